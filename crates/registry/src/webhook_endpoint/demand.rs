//! The on-demand events that an endpoint receives.

use authority_model::{
    proto::events::WebhookEndpoint, record::Record, state::WebhookEndpointState,
};
use authority_store::{Db, row_id};
use authority_webhook::event_types::Selection;

use crate::flow::{error::Error, event_demand};

/// Stores the on-demand event types that an active or paused endpoint selects. Runs in the
/// transaction that changes the endpoint. Events also accumulate while an endpoint is paused.
pub(super) async fn keep(db: &mut Db, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    let takes = [WebhookEndpointState::Active, WebhookEndpointState::Paused];
    if !endpoint.known_state().is_some_and(|state| takes.contains(&state)) {
        return event_demand::end(db, &endpoint.id).await;
    }
    let selection = Selection::of_record(&endpoint.event_types).unwrap_or_default();
    event_demand::keep(db, &row_id(endpoint.tenant_id())?, &endpoint.id, &selection).await
}
