//! Events that exist only while somebody asks for them.

use authority_core::store::{Db, RunQueryDsl};
use authority_model::{
    proto::events::WebhookEndpoint, record::Record, schema::event_demands,
    state::WebhookEndpointState,
};
use authority_webhook::event_types::{EventType, Selection};
use diesel::{prelude::*, upsert::excluded};

use crate::Error;

/// Writes which of those types the endpoint takes, in the transaction that changes it. A paused one takes
/// them too: they wait for it.
pub(super) async fn keep(db: &mut Db, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    let types = types(endpoint);
    if types.is_empty() {
        diesel::delete(event_demands::table.find(&endpoint.id)).execute(db).await?;
        return Ok(());
    }
    diesel::insert_into(event_demands::table)
        .values((
            event_demands::id.eq(&endpoint.id),
            event_demands::tenant_id.eq(endpoint.tenant_id()),
            event_demands::event_types.eq(types),
        ))
        .on_conflict(event_demands::id)
        .do_update()
        .set(event_demands::event_types.eq(excluded(event_demands::event_types)))
        .execute(db)
        .await?;
    Ok(())
}

fn types(endpoint: &WebhookEndpoint) -> Vec<&'static str> {
    let takes = [WebhookEndpointState::Active, WebhookEndpointState::Paused];
    if !endpoint.known_state().is_some_and(|state| takes.contains(&state)) {
        return Vec::new();
    }
    let selection = Selection::of_record(&endpoint.event_types).unwrap_or_default();
    selection.on_demand().map(EventType::name).collect()
}
