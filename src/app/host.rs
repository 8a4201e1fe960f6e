//! The REST gateway's host: authenticates callers, refuses calls under overload, and formats
//! errors.

use std::time::SystemTime;

use gateway_rest::{Document, Fault, Host, Route};
use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::{Value, json};
use tonic::Status;

use super::{
    document::GET_OPEN_API,
    measure::{Called, Operation},
    overload::Overload,
};
use crate::transport::{Peer, RequestId};
use authority_api::{
    error::{ApiError, ErrorCode, without_secrets},
    identity::{ClientAddress, Identity, Via},
};
use authority_process::clock::Clock;

/// The largest gRPC request message, in bytes, the same on each path to the services.
pub(super) const GRPC_LIMIT: usize = 1 << 20;

#[derive(Clone)]
pub(super) struct RestHost {
    pub(super) identity: Identity,
    pub(super) open_api: Document,
    pub(super) clock: Clock,
    pub(super) overload: Overload,
}

impl RestHost {
    pub(super) fn new(
        identity: &Identity,
        open_api: Document,
        clock: &Clock,
        overload: Overload,
    ) -> Self {
        Self { identity: identity.clone(), open_api, clock: clock.clone(), overload }
    }
}

impl Host for RestHost {
    async fn admit(&self, route: &'static Route, parts: &mut Parts) -> Result<(), Status> {
        if let Some(operation) = parts.extensions.get::<Operation>() {
            operation.set(Called::Route(route));
        }
        let peer = parts.extensions.get::<Peer>().and_then(|peer| peer.client);
        let via = Via::Rest { verb: route.method, path: route.path };
        let caller = self.identity.authenticate(route.rpc, via, &parts.headers, peer).await;
        let caller = caller.map_err(ApiError::from)?;
        parts.extensions.insert(caller);
        if let Some(address) = peer {
            parts.extensions.insert(ClientAddress(address));
        }
        Ok(self.overload.look(route.rpc, &parts.extensions).await?)
    }

    fn status(&self, fault: &Fault) -> StatusCode {
        fault.status.unwrap_or_else(|| code(fault).http())
    }

    fn render(&self, fault: &Fault, request_id: Option<&str>) -> Vec<u8> {
        let problems = fault.problems.iter().map(|found| {
            let (field, problem) = (found.field.clone(), found.problem.clone());
            json!({"field": without_secrets(field), "problem": without_secrets(problem)})
        });
        let values = fault.metadata.iter().filter(|(key, _)| !IN_HEADERS.contains(&key.as_str()));
        let details: Vec<_> = problems.chain(values.map(detail)).collect();
        json!({
            "ok": false,
            "error": code(fault).word(),
            "message": without_secrets(fault.message.clone().into_owned()),
            "details": details,
            "request_id": request_id,
        })
        .to_string()
        .into_bytes()
    }

    fn document(&self, route: &'static Route) -> Option<Document> {
        (route.rpc == GET_OPEN_API).then(|| self.open_api.clone())
    }

    fn now(&self) -> Option<SystemTime> {
        Some(self.clock.now().into())
    }

    fn is_id(&self, segment: &str) -> bool {
        is_id(segment)
    }

    fn message_limit(&self) -> usize {
        GRPC_LIMIT
    }

    fn request_id(&self, parts: &Parts) -> Option<HeaderValue> {
        parts.extensions.get().map(RequestId::header)
    }
}

/// Whether a text has as many parts as an id of its kind. If it has more, the last part is a verb.
fn is_id(text: &str) -> bool {
    let mut parts = text.split(':');
    let most = match (parts.next(), parts.next()) {
        (Some("svc"), Some("ent")) => 5,
        (Some("svc"), Some("agent" | "del")) => 4,
        (Some("svc"), Some(_)) => 3,
        _ => return false,
    };
    text.split(':').count() == most
}

/// Values of `ErrorInfo` that a REST response has as headers, or that are for operators.
const IN_HEADERS: [&str; 4] = ["allow", "constraint", "retry_after", "www_authenticate"];

/// Converts a value of `ErrorInfo`'s metadata. A number becomes a JSON number.
fn detail((key, value): &(String, String)) -> Value {
    let value = without_secrets(value.clone());
    let problem = format!("is {value}");
    let value = value.parse::<i64>().map_or_else(|_| Value::from(value), Value::from);
    json!({"field": key, "problem": problem, "value": value})
}

/// Returns the error code for the status's reason. A library's status without a reason is mapped by
/// its gRPC code.
fn code(fault: &Fault) -> ErrorCode {
    let known = ErrorCode::ALL.iter().find(|code| code.word() == fault.reason);
    known.copied().unwrap_or_else(|| ErrorCode::of(fault.code))
}
