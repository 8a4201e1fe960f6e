//! The decisions of the embedding service: who may call, and the form of errors.

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::json;
use tonic::Status;

use crate::{fault::Fault, route::Route};

/// The service that embeds the gateway. Every method but [`Host::admit`] has a default.
pub trait Host: Send + Sync + 'static {
    /// Authenticates and authorises a call, before its body is read. Values that it puts into the
    /// extensions reach the gRPC handler. The method is also called, with any route of the path,
    /// before a 405 and before a 404 for an unknown verb. It is not called before other 404s.
    fn admit(
        &self,
        route: &'static Route,
        parts: &mut Parts,
    ) -> impl Future<Output = Result<(), Status>> + Send;

    /// Returns the HTTP status of an error.
    fn status(&self, fault: &Fault) -> StatusCode {
        fault.default_status()
    }

    /// Returns the JSON body of an error.
    fn render(&self, fault: &Fault, request_id: Option<&str>) -> Vec<u8> {
        google_rpc_status(fault, request_id)
    }

    /// Returns the id that an error body may quote.
    fn request_id(&self, parts: &Parts) -> Option<HeaderValue> {
        parts.headers.get("x-request-id").cloned()
    }

    /// Returns the largest request body, in bytes.
    fn body_limit(&self) -> usize {
        256 << 10
    }

    /// Returns the largest request message, in bytes of protobuf: the service's limit over gRPC. A
    /// number of two bytes in JSON can take eleven bytes in protobuf.
    fn message_limit(&self) -> usize {
        usize::MAX
    }

    /// Returns the current time. If the host returns a time, a time in a query may also be a span
    /// before now: `-90s`, `-15m`, `-1h`, `-7d`.
    fn now(&self) -> Option<SystemTime> {
        None
    }

    /// Returns whether a path segment with a colon is an id. For any other segment, an end that is
    /// not a verb of any route is reported as an unknown verb (404) instead of a wrong method
    /// (405).
    fn is_id(&self, _segment: &str) -> bool {
        false
    }

    /// Returns the success body of a route that has the same response for every caller. The RPC is
    /// then not called, and all responses share these bytes.
    fn document(&self, _route: &'static Route) -> Option<Document> {
        None
    }
}

/// A body that is ready to be sent.
#[derive(Clone, Debug)]
pub struct Document {
    pub bytes: Bytes,
    /// RFC 9110 section 8.8.3. A client that already has these bytes gets a 304.
    pub etag: HeaderValue,
}

/// Returns `google.rpc.Status` as JSON, with `ErrorInfo`, `BadRequest` and `RequestInfo`
/// (<https://google.aip.dev/193>).
pub fn google_rpc_status(fault: &Fault, request_id: Option<&str>) -> Vec<u8> {
    let mut details = Vec::new();
    if !fault.reason.is_empty() {
        let metadata: serde_json::Map<_, _> =
            fault.metadata.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": fault.reason, "metadata": metadata,
        }));
    }
    if !fault.problems.is_empty() {
        let violations: Vec<_> = fault
            .problems
            .iter()
            .map(|problem| json!({"field": problem.field, "description": problem.problem}))
            .collect();
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations,
        }));
    }
    if let Some(id) = request_id {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": id,
        }));
    }
    let code = fault.code as i32;
    json!({"code": code, "message": fault.message, "details": details}).to_string().into_bytes()
}
