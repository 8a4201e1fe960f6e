//! Events that are recorded only while an endpoint or audit stream selects them.

use authority_ids::TenantId;
use authority_model::schema::event_demands;
use authority_store::{Db, RunQueryDsl};
use authority_webhook::event_types::{EventType, Selection};
use diesel::{prelude::*, upsert::excluded};

use super::error::Error;

/// Stores which on-demand event types the selection includes. Runs in the transaction that changes
/// the selection.
pub(crate) async fn keep(
    db: &mut Db,
    tenant: &TenantId,
    id: &str,
    selection: &Selection,
) -> Result<(), Error> {
    let types: Vec<&str> = selection.on_demand().map(EventType::name).collect();
    if types.is_empty() {
        return end(db, id).await;
    }
    diesel::insert_into(event_demands::table)
        .values((
            event_demands::id.eq(id),
            event_demands::tenant_id.eq(tenant.as_str()),
            event_demands::event_types.eq(types),
        ))
        .on_conflict(event_demands::id)
        .do_update()
        .set(event_demands::event_types.eq(excluded(event_demands::event_types)))
        .execute(db)
        .await?;
    Ok(())
}

/// Removes all event types of the endpoint or stream.
pub(crate) async fn end(db: &mut Db, id: &str) -> Result<(), Error> {
    diesel::delete(event_demands::table.find(id)).execute(db).await?;
    Ok(())
}
