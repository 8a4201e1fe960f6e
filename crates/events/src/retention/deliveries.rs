//! Deletes deliveries that are too old, with their attempts.
//!
//! An event is older than its deliveries and is deleted before them. A delivery may still be open
//! then, if its endpoint is paused or its tenant is suspended. Such a delivery can no longer be
//! sent: it is cancelled, and its event counts as lost.

use authority_ids::EndpointRef;
use authority_store::{Db, RunQueryDsl};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Text},
};

use super::log::MOST;
use crate::{delivery::lost, lost::Lost};

/// The endpoints of a tenant that may have open deliveries.
pub(super) const OF_TENANT: &str =
    "SELECT id FROM webhook_endpoints WHERE tenant_id = $1 AND state <> 'deleted' ORDER BY id";

/// The endpoints with deliveries that are too old.
pub(super) const ENDPOINTS: &str = "SELECT e.id FROM webhook_endpoints e \
     JOIN tenants t ON t.id = e.tenant_id AND t.legal_hold IS NULL \
     CROSS JOIN LATERAL (SELECT d.id FROM webhook_deliveries d \
         WHERE d.endpoint_id = e.id ORDER BY d.id LIMIT 1) AS oldest \
     WHERE ($1 IS NULL OR t.id = $1) \
       AND oldest.id < time_bound('svc:delivery:', events_kept_from(t.event_retention_days)) \
     ORDER BY e.id";

/// Locks the cursor before its deliveries. Claiming and recording use the same order.
const CURSOR: &str = "SELECT coalesce(h.oldest, 1) AS oldest FROM webhook_cursors c \
     LEFT JOIN event_heads h ON h.tenant_id = c.tenant_id \
     WHERE c.endpoint_id = $1 FOR UPDATE OF c";

/// Skips deliveries with an attempt in progress, because they end on their own.
const GONE: &str = "SELECT id, sequence FROM webhook_deliveries \
     WHERE endpoint_id = $1 AND state = 'open' AND sequence < $2 \
       AND (leased_until IS NULL OR leased_until <= clock_timestamp()) \
     LIMIT $3 FOR UPDATE SKIP LOCKED";

/// Updates by id, because a join with the rows of [`GONE`] would read whole partitions.
const CANCEL: &str = "UPDATE webhook_deliveries \
     SET state = 'cancelled', ended_at = clock_timestamp(), lease = NULL, leased_until = NULL \
     WHERE id = ANY ($1)";

/// Locks the tenant: its legal hold and retention can't change until this transaction ends.
const KEPT_FROM: &str = "SELECT \
         time_bound('svc:delivery:', events_kept_from(t.event_retention_days)) AS kept_from \
     FROM webhook_endpoints e JOIN tenants t ON t.id = e.tenant_id \
     WHERE e.id = $1 AND t.legal_hold IS NULL FOR SHARE OF t";

const OLD: &str = "SELECT id FROM webhook_deliveries \
     WHERE endpoint_id = $1 AND id < $2 AND state <> 'open' ORDER BY id LIMIT $3 \
     FOR UPDATE SKIP LOCKED";

/// The bound on the last id keeps the statement from reading later partitions.
const DELETE: [&str; 2] = [
    "DELETE FROM webhook_attempts WHERE id = ANY ($1) AND id <= $2",
    "DELETE FROM webhook_deliveries WHERE id = ANY ($1) AND id <= $2",
];

/// Cancels a batch of open deliveries of deleted events. Returns `None` if there are none.
pub(super) async fn cancel(db: &mut Db, endpoint_id: &EndpointRef) -> QueryResult<Option<Lost>> {
    let cursor =
        diesel::sql_query(CURSOR).bind::<Text, _>(endpoint_id.as_str()).get_result(db).await;
    let cursor: Option<Cursor> = cursor.optional()?;
    let Some(Cursor { oldest }) = cursor else { return Ok(None) };
    let gone: Vec<Gone> = diesel::sql_query(GONE)
        .bind::<Text, _>(endpoint_id.as_str())
        .bind::<BigInt, _>(oldest)
        .bind::<BigInt, _>(MOST)
        .load(db)
        .await?;
    let Some(lost) = gone.iter().map(|row| Lost::one(row.sequence)).reduce(Lost::and) else {
        return Ok(None);
    };
    let ids: Vec<&str> = gone.iter().map(|row| &*row.id).collect();
    diesel::sql_query(CANCEL).bind::<Array<Text>, _>(ids).execute(db).await?;
    lost::note(db, endpoint_id, lost).await?;
    Ok(Some(lost))
}

/// Deletes ended deliveries of the endpoint that are too old. Returns whether there are more.
pub(super) async fn delete(db: &mut Db, endpoint_id: &str) -> QueryResult<bool> {
    let kept_from = diesel::sql_query(KEPT_FROM).bind::<Text, _>(endpoint_id).get_result(db).await;
    let kept_from: Option<KeptFrom> = kept_from.optional()?;
    let Some(KeptFrom { kept_from }) = kept_from else { return Ok(false) };
    let old: Vec<Id> = diesel::sql_query(OLD)
        .bind::<Text, _>(endpoint_id)
        .bind::<Text, _>(&kept_from)
        .bind::<BigInt, _>(MOST)
        .load(db)
        .await?;
    let Some(last) = old.last() else { return Ok(false) };
    let ids: Vec<&str> = old.iter().map(|row| &*row.id).collect();
    for statement in DELETE {
        let delete = diesel::sql_query(statement).bind::<Array<Text>, _>(&ids);
        delete.bind::<Text, _>(&last.id).execute(db).await?;
    }
    Ok(i64::try_from(old.len()).is_ok_and(|count| count == MOST))
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct KeptFrom {
    #[diesel(sql_type = Text)]
    kept_from: String,
}

#[derive(QueryableByName)]
struct Cursor {
    #[diesel(sql_type = BigInt)]
    oldest: i64,
}

/// An open delivery of a deleted event.
#[derive(QueryableByName)]
struct Gone {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
}
