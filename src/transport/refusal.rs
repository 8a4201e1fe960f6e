//! Errors of the transport itself, and library errors without a body, in the service's error
//! format.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header},
};
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{head::TooLarge, request_id::RequestId};
use authority_api::error::{ApiError, ErrorCode};

/// The properties of a request that determine the format of an error.
pub(super) struct Asker {
    /// The request's content type, if it is gRPC or gRPC-web.
    grpc: Option<HeaderValue>,
    /// Whether the head was too large, which has a status of its own over REST.
    has_large_head: bool,
}

#[derive(Serialize)]
struct Shape<'a> {
    ok: bool,
    error: &'a str,
    message: &'a str,
    details: Vec<Detail<'a>>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct Detail<'a> {
    field: &'a str,
    problem: &'a str,
}

impl Asker {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        let kind = headers.get(header::CONTENT_TYPE);
        let has_large_head = request.extensions().get::<TooLarge>().is_some();
        Self { grpc: kind.filter(|_| is_grpc(headers)).cloned(), has_large_head }
    }

    pub(super) fn is_grpc(&self) -> bool {
        self.grpc.is_some()
    }

    pub(super) fn refuse(&self, refusal: ApiError, id: &RequestId) -> Response<Body> {
        match &self.grpc {
            Some(kind) => status(refusal, kind),
            None if self.has_large_head => {
                json(&refusal, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, id)
            }
            None => json(&refusal, refusal.code.http(), id),
        }
    }

    /// Adds a body to a library's error that has none, or only plain text.
    pub(super) fn complete(&self, response: Response<Body>, id: &RequestId) -> Response<Body> {
        let status = response.status();
        if !status.is_client_error() && !status.is_server_error() {
            return response;
        }
        let kind = response.headers().get(header::CONTENT_TYPE);
        let said = kind.is_some_and(|kind| !kind.as_bytes().starts_with(b"text/plain"));
        if said {
            return response;
        }
        let refusal = ApiError::plain(code(status));
        let bare = match &self.grpc {
            Some(kind) => self::status(refusal, kind),
            None => json(&refusal, status, id),
        };
        let (head, body) = bare.into_parts();
        let (mut kept, _) = response.into_parts();
        kept.status = head.status;
        kept.headers.remove(header::CONTENT_LENGTH);
        for (name, value) in &head.headers {
            kept.headers.insert(name, value.clone());
        }
        Response::from_parts(kept, body)
    }
}

/// The content types of gRPC-Web.
const WEB: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// Whether a request is gRPC or gRPC-Web, by its content type.
///
/// The types are `application/grpc` alone or with a subtype (`+proto`), and the four of gRPC-Web,
/// in upper or lower case, with or without parameters (RFC 9110, 8.3.1).
pub fn is_grpc(headers: &HeaderMap) -> bool {
    const PLAIN: &str = "application/grpc";
    let Some(essence) = essence(headers) else { return false };
    let plain = essence.get(..PLAIN.len()).filter(|start| start.eq_ignore_ascii_case(PLAIN));
    plain.is_some() && matches!(essence.as_bytes().get(PLAIN.len()), None | Some(b'+'))
        || web(essence).is_some()
}

/// The content type without its parameters.
fn essence(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    kind.split([';', ' ']).next()
}

fn web(essence: &str) -> Option<&'static str> {
    WEB.into_iter().find(|web| essence.eq_ignore_ascii_case(web))
}

/// Converts the headers of a gRPC-Web request to the form that `tonic-web` reads.
///
/// Gateways and browsers' runtimes add parameters to the content type, and a client of the text
/// form does not always send `Accept`.
pub fn normalize_grpc_web<B>(mut request: Request<B>) -> Request<B> {
    let Some(kind) = essence(request.headers()).and_then(web) else { return request };
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let binary = accept.and_then(web).is_some_and(|web| !web.contains("text"));
    if kind.contains("text") && !binary {
        let text = HeaderValue::from_static("application/grpc-web-text+proto");
        headers.insert(header::ACCEPT, text);
    }
    request
}

fn status(refusal: ApiError, kind: &HeaderValue) -> Response<Body> {
    let is_unknown = refusal.code == ErrorCode::NotFound;
    let mut status = Status::from(refusal);
    if is_unknown {
        // In gRPC, an unknown path is an unimplemented method.
        let details = status.get_error_details();
        let text = "this method is unknown";
        status = Status::with_error_details(Code::Unimplemented, text, details);
    }
    let mut response = status.into_http();
    response.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    response
}

fn json(refusal: &ApiError, status: StatusCode, id: &RequestId) -> Response<Body> {
    let details = refusal.violations.iter();
    let shape = Shape {
        ok: false,
        error: refusal.code.word(),
        message: &refusal.message,
        details: details.map(|v| Detail { field: &v.field, problem: &v.problem }).collect(),
        request_id: id.as_str(),
    };
    let body = serde_json::to_vec(&shape).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn code(status: StatusCode) -> ErrorCode {
    match status {
        StatusCode::UNAUTHORIZED => ErrorCode::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorCode::Forbidden,
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
        StatusCode::PRECONDITION_FAILED => ErrorCode::PreconditionFailed,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::TooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::UnsupportedMediaType,
        StatusCode::TOO_MANY_REQUESTS => ErrorCode::RateLimited,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::Unavailable,
        status if status.is_client_error() => ErrorCode::InvalidRequest,
        _ => ErrorCode::Internal,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Version;

    use super::{super::head, *};

    #[test]
    fn a_head_past_the_limit_has_a_status_in_each_protocol() {
        for (version, kind, bytes, expected) in [
            (Version::HTTP_2, "application/json", 16_000, None),
            (Version::HTTP_2, "application/json", 16_500, Some((431, None))),
            (Version::HTTP_2, "application/grpc", 16_500, Some((200, Some("11")))),
            (Version::HTTP_2, "application/grpc-web-text", 60_000, Some((200, Some("11")))),
            // The library has refused larger heads of HTTP/1.
            (Version::HTTP_11, "application/json", 16_500, None),
        ] {
            let request = Request::builder().version(version).header(header::CONTENT_TYPE, kind);
            let request = request.header("long", "x".repeat(bytes)).header("x-request-id", "mine");
            let (mut head, ()) = request.body(()).unwrap().into_parts();
            head::limit(&mut head, 16_384);
            let mut request = Request::from_parts(head, ());
            let id = RequestId::settle(request.headers_mut());
            assert_eq!(id.as_str(), "mine");
            let refusal = request.extensions().get::<TooLarge>().map(|head| head.refusal());
            let answer = refusal.map(|refusal| Asker::of(&request).refuse(refusal, &id));
            let shown = answer.as_ref().map(|answer| {
                let status = answer.headers().get("grpc-status");
                (answer.status().as_u16(), status.map(|status| status.to_str().unwrap()))
            });
            assert_eq!(shown, expected, "{version:?} {kind} {bytes}");
        }
    }

    #[test]
    fn grpc_is_known_by_its_content_type() {
        for (kind, is) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web-text+proto", true),
            ("Application/gRPC-Web+proto", true),
            ("application/grpc-web+proto; charset=utf-8", true),
            ("application/grpcfoo", false),
            ("application/grpc-webfoo", false),
            ("application/json", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            assert_eq!(is_grpc(&headers), is, "{kind}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn grpc_web_has_one_form_for_the_library() {
        let text = "application/grpc-web-text+proto";
        for (kind, accept, kept, accepts) in [
            ("application/grpc-web+proto;charset=utf-8", "", "application/grpc-web+proto", ""),
            ("Application/gRPC-Web", "*/*", "application/grpc-web", "*/*"),
            ("application/grpc-web-text", "", "application/grpc-web-text", text),
            (text, "text/plain, application/grpc-web-text", text, text),
            (text, "application/grpc-web+proto", text, "application/grpc-web+proto"),
            ("application/json", "", "application/json", ""),
        ] {
            let mut request = Request::new(());
            for (name, value) in [(header::CONTENT_TYPE, kind), (header::ACCEPT, accept)] {
                if !value.is_empty() {
                    request.headers_mut().insert(name, HeaderValue::from_static(value));
                }
            }
            let request = normalize_grpc_web(request);
            let header =
                |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
            assert_eq!(
                (header(header::CONTENT_TYPE), header(header::ACCEPT)),
                (kept, accepts),
                "{kind}"
            );
        }
    }
}
