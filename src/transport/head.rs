//! Refuses request heads that two readers could interpret differently: in the target, the length of
//! the body, or the body's type. A proxy might decide by one reading, and the service by the other.
//! Over HTTP/2 it also refuses heads that are too large.

use authority_api::error::{ApiError, ErrorCode};
use axum::http::{
    HeaderMap, Method, Request, Version,
    header::{CONTENT_TYPE, TRANSFER_ENCODING},
    request::Parts,
};

use super::request_id;

/// The size that HTTP/2 adds to each field of a head (RFC 9113, 6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// In the extensions of a request with a head over this number of bytes.
#[derive(Clone, Copy)]
pub(super) struct TooLarge(u32);

impl TooLarge {
    pub(super) fn refusal(self) -> ApiError {
        let text =
            format!("the request's headers exceed {} bytes; send fewer or shorter ones", self.0);
        ApiError::new(ErrorCode::TooLarge, text)
    }
}

/// Marks an HTTP/2 request with headers over the limit, and drops the headers that its refusal does
/// not need.
///
/// The library answers a larger head without a gRPC status, which clients report as an unknown
/// error. It therefore has a higher limit.
pub(super) fn limit(head: &mut Parts, bytes: u32) {
    if head.version != Version::HTTP_2 {
        return; // HTTP/1 has the limit in the library
    }
    let fields = head.headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD);
    let path = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
    if path + fields.sum::<usize>() <= bytes as usize {
        return;
    }
    let kept = [CONTENT_TYPE, request_id::NAME];
    let kept = kept.into_iter().filter_map(|name| Some((head.headers.remove(&name)?, name)));
    head.headers = kept.map(|(value, name)| (name, value)).collect();
    head.extensions.insert(TooLarge(bytes));
}

/// Returns why a request's head is refused, if it is.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<ApiError> {
    let headers = request.headers();
    if !is_path(request) {
        let text = "must be a path that begins with `/`";
        return Some(ApiError::field("path", text));
    }
    if !is_framed_once(headers) {
        let text = "must be `chunked`, once, or left out";
        return Some(ApiError::field("transfer-encoding", text));
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let kind = types.next()?;
    if types.next().is_some() {
        return Some(ApiError::field("content-type", "is given more than once; send it once"));
    }
    let text = kind.as_bytes();
    (text.contains(&b';') && !is_utf8(text)).then(|| {
        let message = "the `charset` of `Content-Type` is not supported; send UTF-8";
        ApiError::new(ErrorCode::UnsupportedMediaType, message)
    })
}

/// Whether the target has a path.
///
/// Among the other forms, an absolute URI also has a path (RFC 9112, 3.2); `*` is for OPTIONS.
fn is_path<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    path.starts_with('/') || path == "*" && request.method() == Method::OPTIONS
}

/// Whether the body's length is stated once and unambiguously.
///
/// Hyper reads every list that ends in `chunked` as if `chunked` were alone (RFC 9112, 6.1 and
/// 6.3).
fn is_framed_once(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}

/// Whether every charset of a media type is UTF-8 or a subset of it.
///
/// Texts are read as UTF-8.
fn is_utf8(kind: &[u8]) -> bool {
    kind.split(|byte| *byte == b';').skip(1).all(|parameter| {
        let mut parts = parameter.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let value = parts.next().unwrap_or_default().trim_ascii();
        let value = value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value);
        let is = |charset: &&[u8]| value.eq_ignore_ascii_case(charset);
        !name.eq_ignore_ascii_case(b"charset")
            || [&b"utf-8"[..], b"utf8", b"us-ascii"].iter().any(is)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: axum::http::request::Builder) -> Option<u16> {
        refusal(&request.body(()).unwrap()).map(|refusal| refusal.code.http().as_u16())
    }

    #[test]
    fn a_target_is_a_path() {
        for (method, uri, refused) in [
            ("GET", "/health", None),
            ("GET", "http://a/health", None),
            ("GET", "http://a", None),
            ("OPTIONS", "*", None),
            ("GET", "health", Some(400)),
            ("GET", "health:80", Some(400)),
            ("GET", "*", Some(400)),
            ("CONNECT", "a:80", Some(400)),
        ] {
            assert_eq!(
                status(Request::builder().method(method).uri(uri)),
                refused,
                "{method} {uri}"
            );
        }
    }

    #[test]
    fn a_body_is_framed_in_one_way() {
        for (codings, refused) in [
            (&["chunked"][..], None),
            (&["Chunked"], None),
            (&[], None),
            (&["chunked", "chunked"], Some(400)),
            (&["identity, chunked"], Some(400)),
            (&["gzip", "chunked"], Some(400)),
            (&["chunked, chunked"], Some(400)),
            (&[", chunked"], Some(400)),
            (&["chunked;q=1"], Some(400)),
            (&["identity"], Some(400)),
            (&[""], Some(400)),
        ] {
            let request = codings.iter().fold(Request::post("/"), |request, coding| {
                request.header(TRANSFER_ENCODING, *coding)
            });
            assert_eq!(status(request), refused, "{codings:?}");
        }
    }

    #[test]
    fn a_body_has_one_type_and_is_utf8() {
        for (types, refused) in [
            (&["application/json"][..], None),
            (&["application/json; charset=utf-8"], None),
            (&["application/json;charset=\"UTF-8\""], None),
            (&["application/json; charset=US-ASCII; x=1"], None),
            (&["multipart/form-data; boundary=x"], None),
            (&["application/json", "text/plain"], Some(400)),
            (&["application/json", "application/json"], Some(400)),
            (&["application/json; charset=utf-16"], Some(415)),
            (&["application/json; Charset=\"utf-16\""], Some(415)),
            (&["application/json; charset = latin1"], Some(415)),
            (&["application/json; charset=utf-8; charset=utf-7"], Some(415)),
            (&["application/json; charset"], Some(415)),
            (&["application/x-www-form-urlencoded; charset=utf-32"], Some(415)),
        ] {
            let request = types
                .iter()
                .fold(Request::post("/"), |request, kind| request.header(CONTENT_TYPE, *kind));
            assert_eq!(status(request), refused, "{types:?}");
        }
    }
}
