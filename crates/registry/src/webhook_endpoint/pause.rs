//! Pauses an endpoint on request.

use authority_model::{
    proto::events::*, record::RpcRequest, schema::webhook_endpoints, state::WebhookEndpointState,
};

use super::WebhookEndpoints;
use crate::flow::{
    operations::or_not_found,
    prelude::*,
    version::{IfMatch, tagged},
};

/// `state_reason` of an endpoint that was paused on request.
const ASKED: &str = "asked";

impl WebhookEndpoints {
    /// Pauses the endpoint. An endpoint that is already paused keeps its reason.
    pub(super) async fn pause(
        &self,
        call: Request<PauseWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request) = admitted(call)?;
        let by = caller.clone();
        let paused = self.0.idempotent(&caller, key, async move |db| {
            let id = request.id;
            let was = or_not_found(WebhookEndpoint::lock(db, by.tenant(), &id).await, &id)?;
            if_match.check(&was)?;
            if was.known_state() == Some(WebhookEndpointState::Paused) {
                return Ok(was);
            }
            if !PauseWebhookEndpointRequest::STATES.contains(&was.state()) {
                let text = format!("`{}` is {}: only an active one is paused", was.id, was.state);
                return Err(Error::NotAllowed(text));
            }
            let endpoint = diesel::update(webhook_endpoints::table.find(&was.id))
                .set((
                    webhook_endpoints::state.eq(WebhookEndpointState::Paused),
                    webhook_endpoints::state_reason.eq(ASKED),
                    webhook_endpoints::pause_reason.eq(request.reason),
                    webhook_endpoints::updated_at.eq(clock_timestamp()),
                ))
                .returning(WebhookEndpoint::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(endpoint)
        });
        Ok(tagged(paused.await?.reply()))
    }
}
