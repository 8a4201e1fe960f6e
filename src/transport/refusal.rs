//! The transport's own refusals, and those of libraries that say nothing, in the one error shape.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use tonic::{Code, Status};

use super::request_id::RequestId;
use crate::error::{ErrorCode, Refusal};

/// The client's door, as far as a refusal's form depends on it.
pub(super) struct Asker {
    /// The request's content type when it is gRPC or gRPC-web.
    grpc: Option<HeaderValue>,
}

#[derive(Serialize)]
struct Shape<'a> {
    ok: bool,
    error: &'a str,
    message: &'a str,
    details: [(); 0],
    request_id: &'a str,
}

impl Asker {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let grpc = headers.get(header::CONTENT_TYPE).filter(|kind| is_grpc(kind)).cloned();
        Self { grpc }
    }

    pub(super) fn refuse(&self, code: ErrorCode, id: &RequestId) -> Response<Body> {
        match &self.grpc {
            Some(kind) => status(code, kind),
            None => json(code, code.http(), id),
        }
    }

    /// Gives a body to an error that a library left without, or with mere text.
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
        let code = code(status);
        let bare = match &self.grpc {
            Some(kind) => self::status(code, kind),
            None => json(code, status, id),
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

fn is_grpc(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"application/grpc")
}

fn status(code: ErrorCode, kind: &HeaderValue) -> Response<Body> {
    // To gRPC, a path without a method is an unimplemented one.
    let status = match code {
        ErrorCode::NotFound => Status::new(Code::Unimplemented, "there is no such method here"),
        code => Refusal::plain(code).into(),
    };
    let mut response = status.into_http();
    response.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    response
}

fn json(code: ErrorCode, status: StatusCode, id: &RequestId) -> Response<Body> {
    let shape = Shape {
        ok: false,
        error: code.word(),
        message: code.sentence(),
        details: [],
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
