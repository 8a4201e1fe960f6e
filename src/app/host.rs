//! What the REST gateway asks of this service: who may call, and how a refusal looks.

use gateway_rest::{Fault, Host, Route};
use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::json;
use tonic::Status;

use crate::{
    error::{ErrorCode, Refusal},
    identity::Identity,
    transport::{Peer, RequestId},
};

pub(super) struct RestHost {
    pub(super) identity: Identity,
}

impl Host for RestHost {
    async fn admit(&self, route: &'static Route, parts: &mut Parts) -> Result<(), Status> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.client);
        let caller = self
            .identity
            .authenticate(route.rpc, &parts.headers, peer)
            .await
            .map_err(Refusal::from)?;
        parts.extensions.insert(caller);
        Ok(())
    }

    fn status(&self, fault: &Fault) -> StatusCode {
        let known = ErrorCode::ALL.iter().find(|code| code.word() == fault.reason);
        known.map_or_else(|| fault.default_status(), |code| code.http())
    }

    fn render(&self, fault: &Fault, request_id: Option<&str>) -> Vec<u8> {
        let details: Vec<_> = fault
            .problems
            .iter()
            .map(|problem| json!({"field": problem.field, "problem": problem.problem}))
            .collect();
        let code = if fault.reason.is_empty() { "internal" } else { &fault.reason };
        json!({
            "ok": false,
            "error": code,
            "message": fault.message,
            "details": details,
            "request_id": request_id,
        })
        .to_string()
        .into_bytes()
    }

    fn request_id(&self, parts: &Parts) -> Option<HeaderValue> {
        parts.extensions.get().map(RequestId::header)
    }
}
