//! The span of a request, by the conventions of OpenTelemetry for servers of HTTP and of RPC.
//!
//! It is created only if traces are sent. The layer that measures calls names it after the
//! operation.

use axum::{
    body::Body,
    http::{Method, Request, Response},
};
use tonic::{Code, Status};
use tracing::{Span, field::Empty};

use super::request_id::RequestId;
use crate::telemetry::{REQUEST_SPAN, traces};

/// Starts the span of a request, as part of its caller's trace.
pub(super) fn start(request: &Request<Body>, id: &RequestId) -> Span {
    // The query is left out: it may contain the values of a page token or a filter.
    let span = tracing::info_span!(
        REQUEST_SPAN,
        otel.kind = "server",
        otel.name = known(request.method()).unwrap_or("HTTP"),
        otel.status_code = Empty,
        "error.type" = Empty,
        request.id = id.as_str(),
        http.request.method = known(request.method()).unwrap_or("_OTHER"),
        url.path = request.uri().path(),
        http.response.status_code = Empty,
        rpc.response.status_code = Empty,
    );
    traces::follow(&span, request.headers());
    span
}

/// Returns a method that HTTP defines. Clients can send any other text.
fn known(method: &Method) -> Option<&'static str> {
    match method.as_str() {
        "GET" => Some("GET"),
        "HEAD" => Some("HEAD"),
        "POST" => Some("POST"),
        "PUT" => Some("PUT"),
        "PATCH" => Some("PATCH"),
        "DELETE" => Some("DELETE"),
        "OPTIONS" => Some("OPTIONS"),
        _ => None,
    }
}

/// Adds the outcome to the span. For a gRPC stream, the outcome of its start is used.
pub(super) fn end(span: &Span, response: &Response<Body>, is_grpc: bool) {
    if span.is_disabled() {
        return;
    }
    if is_grpc {
        let code = Status::from_header_map(response.headers());
        let code = code.map_or(Code::Ok, |status| status.code());
        span.record("rpc.response.status_code", word(code));
        if is_fault(code) {
            fail(span, word(code));
        }
    } else {
        let status = response.status();
        // OpenTelemetry has no unsigned numbers: they would become texts.
        span.record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            fail(span, status.as_str());
        }
    }
}

fn fail(span: &Span, error_type: &str) {
    span.record("error.type", error_type).record("otel.status_code", "error");
}

/// Whether the server failed. Other codes are the caller's errors.
fn is_fault(code: Code) -> bool {
    use Code::{DataLoss, DeadlineExceeded, Internal, Unavailable, Unimplemented, Unknown};
    [DataLoss, DeadlineExceeded, Internal, Unavailable, Unimplemented, Unknown].contains(&code)
}

fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
