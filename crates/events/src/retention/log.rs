//! Deletes events that are too old, oldest first.
//!
//! A tenant's log has no gaps: only events before the first kept event are deleted. Readers of the
//! log compare their position with the sequence of that event. Events of one row are as old as one
//! another, and are deleted together.

use authority_store::{Db, RunQueryDsl};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text},
};

/// The most rows that one transaction deletes.
pub(super) const MOST: i64 = 2_000;

/// The tenants that have events older than their retention.
pub(super) const TENANTS: &str = "SELECT t.id FROM tenants t \
     JOIN event_heads h ON h.tenant_id = t.id \
     CROSS JOIN LATERAL (SELECT e.id FROM events e \
         WHERE e.tenant_id = t.id AND e.last_sequence >= h.oldest ORDER BY e.last_sequence LIMIT 1) AS oldest \
     WHERE t.legal_hold IS NULL AND ($1 IS NULL OR t.id = $1) \
       AND oldest.id < time_bound('svc:event:', events_kept_from(t.event_retention_days)) \
     ORDER BY t.id";

/// Locks the tenant: its legal hold and retention can't change until this transaction ends.
const LOG: &str = "SELECT h.oldest, \
            time_bound('svc:event:', events_kept_from(t.event_retention_days)) AS kept_from \
     FROM tenants t JOIN event_heads h ON h.tenant_id = t.id \
     WHERE t.id = $1 AND t.legal_hold IS NULL FOR SHARE OF t";

const NEXT: &str = "SELECT \
            coalesce(min(last_sequence - size + 1) FILTER (WHERE id >= $3), max(last_sequence) + 1) AS oldest, \
            coalesce(max(id) < $3 AND count(*) = $4, false) AS has_more \
     FROM (SELECT id, last_sequence, size FROM events WHERE tenant_id = $1 AND last_sequence >= $2 \
           ORDER BY last_sequence LIMIT $4) AS next";

/// The bound on the id keeps the statement from reading later partitions.
const DELETE: &str = "DELETE FROM events \
     WHERE tenant_id = $1 AND last_sequence >= $2 AND last_sequence < $3 AND id < $4";

const RAISE: &str = "UPDATE event_heads SET oldest = $2 WHERE tenant_id = $1";

/// Deletes the tenant's oldest events. Returns whether more are too old.
pub(super) async fn delete(db: &mut Db, tenant_id: &str) -> QueryResult<bool> {
    let log = diesel::sql_query(LOG).bind::<Text, _>(tenant_id).get_result(db).await;
    let log: Option<Log> = log.optional()?;
    let Some(Log { oldest: from, kept_from }) = log else { return Ok(false) };
    let next: Next = diesel::sql_query(NEXT)
        .bind::<Text, _>(tenant_id)
        .bind::<BigInt, _>(from)
        .bind::<Text, _>(&kept_from)
        .bind::<BigInt, _>(MOST)
        .get_result(db)
        .await?;
    let Some(oldest) = next.oldest.filter(|oldest| *oldest > from) else { return Ok(false) };
    let deleted = diesel::sql_query(DELETE)
        .bind::<Text, _>(tenant_id)
        .bind::<BigInt, _>(from)
        .bind::<BigInt, _>(oldest)
        .bind::<Text, _>(&kept_from)
        .execute(db)
        .await?;
    // Done last, because the sequencer waits for this row.
    let raise = diesel::sql_query(RAISE).bind::<Text, _>(tenant_id);
    raise.bind::<BigInt, _>(oldest).execute(db).await?;
    tracing::debug!(tenant.id = tenant_id, events = deleted, oldest, "deleted events by age");
    Ok(next.has_more)
}

#[derive(QueryableByName)]
struct Log {
    #[diesel(sql_type = BigInt)]
    oldest: i64,
    #[diesel(sql_type = Text)]
    kept_from: String,
}

/// The sequence of the first event to keep.
#[derive(QueryableByName)]
struct Next {
    /// `None` if the log is empty.
    #[diesel(sql_type = Nullable<BigInt>)]
    oldest: Option<i64>,
    #[diesel(sql_type = Bool)]
    has_more: bool,
}
