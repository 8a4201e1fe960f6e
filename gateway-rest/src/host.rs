//! What the service around the gateway decides: who may call, and how a refusal looks.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::json;
use tonic::Status;

use crate::{fault::Fault, route::Route};

/// The service that the gateway stands in. Every method has a default but [`Host::admit`].
pub trait Host: Send + Sync + 'static {
    /// Authenticates and authorises a call, before its body is read. What it puts into the
    /// extensions reaches the gRPC handler. Also asked, with any route of the path, before a
    /// 405; not before a 404.
    fn admit(
        &self,
        route: &'static Route,
        parts: &mut Parts,
    ) -> impl Future<Output = Result<(), Status>> + Send;

    /// HTTP status of a refusal.
    fn status(&self, fault: &Fault) -> StatusCode {
        fault.default_status()
    }

    /// JSON body of a refusal.
    fn render(&self, fault: &Fault, request_id: Option<&str>) -> Vec<u8> {
        google_rpc_status(fault, request_id)
    }

    /// The id that a refusal's body may quote.
    fn request_id(&self, parts: &Parts) -> Option<HeaderValue> {
        parts.headers.get("x-request-id").cloned()
    }

    /// The largest request body, in bytes.
    fn body_limit(&self) -> usize {
        256 << 10
    }

    /// The largest message that a request may come to, in bytes of protobuf: what the service
    /// takes over gRPC. A number of two bytes in JSON can take eleven there.
    fn message_limit(&self) -> usize {
        usize::MAX
    }

    /// The success body of a route whose answer is ready and the same to everybody: the method is
    /// then not called, and every answer shares these bytes.
    fn document(&self, _route: &'static Route) -> Option<Document> {
        None
    }
}

/// A body that is ready to be sent.
#[derive(Clone, Debug)]
pub struct Document {
    pub bytes: Bytes,
    /// RFC 9110 section 8.8.3: whoever has these bytes is told so, and is not sent them again.
    pub etag: HeaderValue,
}

/// `google.rpc.Status` as JSON, with `ErrorInfo`, `BadRequest` and `RequestInfo`
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
