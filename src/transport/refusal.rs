//! Errors of the transport itself, and those of libraries that have no body, in the service's error shape.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::request_id::RequestId;
use authority_api::error::{ApiError, ErrorCode};

/// The client's transport, as far as the form of an error depends on it.
pub(super) struct Asker {
    /// The request's content type, if it is gRPC or gRPC-web.
    grpc: Option<HeaderValue>,
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
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let kind = headers.get(header::CONTENT_TYPE);
        Self { grpc: kind.filter(|_| is_grpc(headers)).cloned() }
    }

    pub(super) fn refuse(&self, refusal: ApiError, id: &RequestId) -> Response<Body> {
        match &self.grpc {
            Some(kind) => status(refusal, kind),
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

/// Whether a request is gRPC or gRPC-Web, by its content type: `application/grpc` by itself, with a
/// subtype (`+proto`) or with parameters, or one of gRPC-Web's four.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return false };
    match kind.as_bytes().strip_prefix(b"application/grpc") {
        Some([] | [b'+' | b';' | b' ', ..]) => true,
        Some(web) => matches!(web, b"-web" | b"-web+proto" | b"-web-text" | b"-web-text+proto"),
        None => false,
    }
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
    use super::*;

    #[test]
    fn grpc_is_known_by_its_content_type() {
        for (kind, is) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web-text+proto", true),
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
}
