//! The REST gateway's host: authenticates callers, and formats errors.

use gateway_rest::{Document, Fault, Host, Route};
use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::json;
use tonic::Status;

use super::{GRPC_LIMIT, document::GET_OPEN_API};
use crate::transport::{Peer, RequestId};
use authority_api::{
    error::{ApiError, ErrorCode, without_secrets},
    identity::{Identity, Via},
};

#[derive(Clone)]
pub(super) struct RestHost {
    pub(super) identity: Identity,
    pub(super) open_api: Document,
}

impl Host for RestHost {
    async fn admit(&self, route: &'static Route, parts: &mut Parts) -> Result<(), Status> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.client);
        let via = Via::Rest { verb: route.method, path: route.path };
        let caller = self.identity.authenticate(route.rpc, via, &parts.headers, peer).await;
        let caller = caller.map_err(ApiError::from)?;
        parts.extensions.insert(caller);
        Ok(())
    }

    fn status(&self, fault: &Fault) -> StatusCode {
        fault.status.unwrap_or_else(|| code(fault).http())
    }

    fn render(&self, fault: &Fault, request_id: Option<&str>) -> Vec<u8> {
        let details: Vec<_> = fault
            .problems
            .iter()
            .map(|found| {
                let (field, problem) = (found.field.clone(), found.problem.clone());
                json!({"field": without_secrets(field), "problem": without_secrets(problem)})
            })
            .collect();
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

    fn message_limit(&self) -> usize {
        GRPC_LIMIT
    }

    fn request_id(&self, parts: &Parts) -> Option<HeaderValue> {
        parts.extensions.get().map(RequestId::header)
    }
}

/// The error code by the status's reason or, for a library's status without one, by its gRPC code.
fn code(fault: &Fault) -> ErrorCode {
    let known = ErrorCode::ALL.iter().find(|code| code.word() == fault.reason);
    known.copied().unwrap_or_else(|| ErrorCode::of(fault.code))
}
