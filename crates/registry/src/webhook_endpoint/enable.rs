//! Enables a paused or disabled endpoint.

use authority_model::{
    proto::events::*, record::RpcRequest, schema::webhook_endpoints, state::WebhookEndpointState,
};

use super::{WebhookEndpoints, demand, holder::Holder, position};
use crate::flow::{
    operations::or_not_found,
    prelude::*,
    version::{IfMatch, tagged},
};
use authority_api::identity::CallerKind;

/// `from` of a request that skips the events missed so far.
const NOW: &str = "now";

impl WebhookEndpoints {
    pub(super) async fn enable(
        &self,
        call: Request<EnableWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request) = admitted(call)?;
        let by = caller.clone();
        let enabled = self.0.idempotent(&caller, key, async move |db| {
            let id = request.id;
            let holder = Holder::of(db, &by).await?;
            let was = or_not_found(WebhookEndpoint::lock(db, by.tenant(), &id).await, &id)?;
            if_match.check(&was)?;
            permit(&was, &by)?;
            let endpoint = diesel::update(webhook_endpoints::table.find(&was.id))
                .set((
                    webhook_endpoints::state.eq(WebhookEndpointState::Active),
                    webhook_endpoints::state_reason.eq(None::<String>),
                    webhook_endpoints::key_id.eq(holder.key_id),
                    webhook_endpoints::person_subject.eq(holder.person_subject),
                    webhook_endpoints::person_email.eq(holder.person_email),
                    webhook_endpoints::adopted_by.eq(&by.actor),
                    webhook_endpoints::updated_at.eq(clock_timestamp()),
                ))
                .returning(WebhookEndpoint::as_returning())
                .get_result(db)
                .await?;
            position::resume(db, &endpoint).await?;
            if request.from.as_deref() == Some(NOW) {
                position::skip(db, &endpoint).await?;
            }
            demand::keep(db, &endpoint).await?;
            Ok::<_, Error>(endpoint)
        });
        let enabled = enabled.await?;
        self.0.wait_for_graph::<WebhookEndpoint>().await;
        Ok(tagged(enabled.reply()))
    }
}

/// Refuses an API key for a paused endpoint. Enabling it resumes deliveries after a key or person
/// lost their access, or reverts a requested pause. That is a person's decision.
fn permit(was: &WebhookEndpoint, by: &Caller) -> Result<(), Error> {
    let is_key = matches!(by.kind, CallerKind::Key { .. });
    match was.known_state() {
        Some(WebhookEndpointState::Paused) if is_key => {
            let text = "it was paused on request or with its key or person; an admin can enable it";
            Err(Error::Role(text.to_owned()))
        }
        _ if EnableWebhookEndpointRequest::STATES.contains(&was.state()) => Ok(()),
        _ => {
            let text =
                format!("`{}` is {}: only a paused or disabled one is enabled", was.id, was.state);
            Err(Error::NotAllowed(text))
        }
    }
}
