//! An endpoint's position in the log of events.
//!
//! The head is read without a lock, and no event is missed: an event that is committed after the response is
//! numbered after this statement, since the sequencer numbers only what is committed. Its transaction raises
//! the tenant's head, whose committed value never falls, so the event's number is above every value that a
//! statement has read before. A transaction that is numbering right now has not committed: its events are
//! above the head read here, too, and are delivered as well. They are of changes before the response, which
//! an endpoint may receive; the other way round, one would be lost.

use authority_core::store::{Db, RunQueryDsl};
use authority_model::proto::events::WebhookEndpoint;
use diesel::sql_types::Text;

use crate::Error;

/// Begins at the head.
pub(super) async fn start(db: &mut Db, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    diesel::sql_query(
        "INSERT INTO webhook_cursors (endpoint_id, tenant_id, sequence) VALUES ($1, $2, \
             coalesce((SELECT sequence FROM event_heads WHERE tenant_id = $2), 0))",
    )
    .bind::<Text, _>(&endpoint.id)
    .bind::<Text, _>(endpoint.tenant_id())
    .execute(db)
    .await?;
    Ok(())
}

/// Goes on where it stopped, without the failures that stopped it.
pub(super) async fn resume(db: &mut Db, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    diesel::sql_query(
        "UPDATE webhook_cursors SET failing_since = NULL, waits_until = NULL, breaker = DEFAULT \
         WHERE endpoint_id = $1 AND tenant_id = $2",
    )
    .bind::<Text, _>(&endpoint.id)
    .bind::<Text, _>(endpoint.tenant_id())
    .execute(db)
    .await?;
    Ok(())
}

/// Passes over what it has not received; that does not count as lost.
pub(super) async fn skip(db: &mut Db, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    diesel::sql_query(
        "UPDATE webhook_cursors SET sequence = greatest(sequence, \
             (SELECT sequence FROM event_heads WHERE tenant_id = $2)) \
         WHERE endpoint_id = $1 AND tenant_id = $2",
    )
    .bind::<Text, _>(&endpoint.id)
    .bind::<Text, _>(endpoint.tenant_id())
    .execute(db)
    .await?;
    diesel::sql_query(
        "UPDATE webhook_deliveries SET state = 'cancelled', ended_at = clock_timestamp() \
         WHERE endpoint_id = $1 AND tenant_id = $2 AND state = 'open'",
    )
    .bind::<Text, _>(&endpoint.id)
    .bind::<Text, _>(endpoint.tenant_id())
    .execute(db)
    .await?;
    Ok(())
}
