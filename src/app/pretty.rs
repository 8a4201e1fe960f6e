//! `?pretty` on REST: the response with line breaks and indentation, for people.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Either},
};
use gateway_rest::{Fault, Host as _};
use http::{HeaderValue, Request, Uri, header, uri::PathAndQuery};
use http_body::Body as _;
use tonic::Status;
use tower::{Layer, Service};

use super::{
    host::RestHost,
    wrapped::{Around, Wrapped},
};
use authority_api::error::{ApiError, ErrorCode};

/// The query parameter; operations do not use it.
const PRETTY: [&str; 2] = ["pretty", "pretty=true"];
/// The maximum size of an indented response, in bytes. A larger response is meant for programs.
const LARGEST: u64 = 1024 * 1024;
/// The maximum number of indented levels. Deeper levels are not indented further: without this
/// limit, a deeply nested response could grow by any factor.
const DEEPEST: usize = 16;

/// The layer around the REST routes.
#[derive(Clone)]
pub(super) struct PrettyLayer(pub(super) Arc<RestHost>);

impl<S> Layer<S> for PrettyLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for PrettyLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn call(&self, inner: &mut S, mut request: Request<Body>) -> Self::Future {
        let Some(plain) = without_parameter(request.uri()) else {
            return Either::Left(inner.call(request));
        };
        *request.uri_mut() = plain;
        let host = self.0.clone();
        let (parts, body) = request.into_parts();
        let request_id = host.request_id(&parts);
        let answer = inner.call(Request::from_parts(parts, body));
        let answer = async move {
            let indented = indented_answer(answer.await?).await;
            Ok(indented
                .unwrap_or_else(|fault| gateway_rest::refusal(&*host, fault, request_id.as_ref())))
        };
        Either::Right(answer.boxed())
    }
}

/// Returns the address without the parameter, if it has the parameter.
fn without_parameter(uri: &Uri) -> Option<Uri> {
    let query = uri.query()?;
    if !query.split('&').any(|pair| PRETTY.contains(&pair)) {
        return None;
    }
    let rest: Vec<_> = query.split('&').filter(|pair| !PRETTY.contains(pair)).collect();
    let path = uri.path();
    let text = if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

/// # Errors
/// The response ended early: its incomplete content must not be sent as a response.
async fn indented_answer(answer: Response) -> Result<Response, Fault> {
    let is_json = answer.headers().get(header::CONTENT_TYPE)
        == Some(&HeaderValue::from_static("application/json"));
    // A stream has no known length.
    let fits = answer.body().size_hint().exact().filter(|length| *length <= LARGEST);
    let Some(length) = fits.filter(|_| is_json) else { return Ok(answer) };
    let (mut parts, body) = answer.into_parts();
    let read = to_bytes(body, usize::try_from(length).unwrap_or(usize::MAX)).await;
    let read = read.map_err(|error| {
        tracing::error!(%error, "failed to read a response to format it");
        Fault::from(Status::from(ApiError::plain(ErrorCode::Internal)))
    })?;
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(indented(&read))))
}

/// Returns the JSON with a line for each member and item. Other bytes are unchanged: numbers keep
/// their digits.
fn indented(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    let new_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth.min(DEEPEST), b' ');
    };
    for (at, byte) in json.iter().copied().enumerate() {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            out.push(byte);
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                let next = json.iter().skip(at + 1).find(|next| !next.is_ascii_whitespace());
                if !matches!(next, Some(b'}' | b']')) {
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(out.last(), Some(b'{' | b'[')) {
                    new_line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            byte => {
                in_text = byte == b'"';
                out.push(byte);
            }
        }
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use bytes::Bytes;
    use http_body::{Frame, SizeHint};

    use super::*;

    /// A body with a known length that ends early.
    struct Broken;

    impl http_body::Body for Broken {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Ready(Some(Err(std::io::Error::other("broken off"))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(2)
        }
    }

    #[tokio::test]
    async fn what_breaks_off_is_no_answer() {
        let json = HeaderValue::from_static("application/json");
        let answer = |body| {
            let mut answer = Response::new(body);
            answer.headers_mut().insert(header::CONTENT_TYPE, json.clone());
            answer
        };
        let fault = indented_answer(answer(Body::new(Broken))).await.unwrap_err();
        assert_eq!(fault.reason, "internal");
        let whole = indented_answer(answer(Body::from("{}"))).await.unwrap();
        assert_eq!(to_bytes(whole.into_body(), 10).await.unwrap(), "{}\n");
    }

    #[test]
    fn every_value_stays_and_gets_a_line() {
        let json = br#"{"a":[1.50,"x: {\"y\", \\"],"b":{},"c":[],"d":{"e":null}}"#;
        let expected = "{\n  \"a\": [\n    1.50,\n    \"x: {\\\"y\\\", \\\\\"\n  ],\n  \"b\": {},\n  \"c\": [],\n  \
                        \"d\": {\n    \"e\": null\n  }\n}\n";
        let shown = indented(json);
        assert_eq!(String::from_utf8(shown.clone()).unwrap(), expected);
        assert_eq!(indented(&shown), shown);
        let deep = format!("{}{}{}", "[".repeat(100), "1,".repeat(1000) + "1", "]".repeat(100));
        assert!(indented(deep.as_bytes()).len() < 20 * deep.len());
    }

    #[test]
    fn only_the_parameter_leaves_the_query() {
        let without =
            |uri: &str| without_parameter(&uri.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(without("/v1/x?pretty").unwrap(), "/v1/x");
        assert_eq!(without("/v1/x?a=b&pretty=true&c=%20").unwrap(), "/v1/x?a=b&c=%20");
        assert_eq!(without("http://a.example/v1/x?pretty").unwrap(), "http://a.example/v1/x");
        for other in ["/v1/x", "/v1/x?prettyx", "/v1/x?pretty=no", "/v1/x?a=pretty"] {
            assert_eq!(without(other), None, "{other}");
        }
    }
}
