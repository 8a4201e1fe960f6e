//! The position of an audit stream, and the lease for sending it.

use authority_ids::TenantId;
use authority_store::{Db, RunQueryDsl, new_id, prepared};
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{BigInt, Bool, Integer, Jsonb, Nullable, Text, Timestamptz},
};
use serde_json::Value;

use crate::lost::Lost;

/// Claims streams that have messages to send and are not leased by another node. The streams that
/// have waited longest come first. Sealed streams and streams of inactive tenants send no messages.
const CLAIM: &str = "UPDATE audit_cursors c \
     SET lease = $1::uuid, leased_until = clock_timestamp() + interval '60 s' \
     FROM (SELECT c.stream_id FROM audit_cursors c \
           JOIN audit_streams s ON s.id = c.stream_id AND s.state = 'active' \
           JOIN tenants t ON t.id = c.tenant_id AND t.state = 'active' \
           WHERE (c.leased_until IS NULL OR c.leased_until <= clock_timestamp()) \
             AND (c.next_try_at IS NULL OR c.next_try_at <= clock_timestamp()) \
             AND (EXISTS (SELECT FROM event_heads h \
                          WHERE h.tenant_id = c.tenant_id AND h.sequence > c.sequence) \
                  OR EXISTS (SELECT FROM log_heads l \
                             WHERE l.tenant_id = c.tenant_id AND l.checkpoint <> '' \
                               AND (c.checkpoint_at IS NULL OR l.signed_at > c.checkpoint_at) \
                               AND may_try_checkpoint(c.checkpoint_failures, c.checkpoint_failed_at))) \
           ORDER BY c.next_try_at NULLS FIRST LIMIT $2 FOR UPDATE OF c SKIP LOCKED) AS due, \
          audit_streams s \
     WHERE c.stream_id = due.stream_id AND s.id = c.stream_id \
     RETURNING c.stream_id, c.tenant_id, c.sequence, c.checkpoint_at, c.failures, \
               may_try_checkpoint(c.checkpoint_failures, c.checkpoint_failed_at) AS may_try_checkpoint, \
               s.sink, s.target, s.filter, s.updated_at";

/// Records the progress and renews the lease. Changes no row if the stream was sealed or changed,
/// or the lease has expired. Accepted events reset the count of failures, and an accepted
/// checkpoint resets the count of failed checkpoints.
const HOLD: &str = "UPDATE audit_cursors c \
     SET sequence = $3, checkpoint_at = coalesce($4, checkpoint_at), next_try_at = NULL, \
         failures = CASE WHEN $3 > sequence THEN 0 ELSE failures END, \
         checkpoint_failures = CASE \
             WHEN $8 IS NOT NULL THEN checkpoint_failures + 1 \
             WHEN $4 > coalesce(checkpoint_at, '-infinity') THEN 0 \
             ELSE checkpoint_failures END, \
         checkpoint_failed_at = CASE WHEN $8 IS NULL THEN checkpoint_failed_at ELSE clock_timestamp() END, \
         checkpoint_error = coalesce($8, checkpoint_error), \
         leased_until = clock_timestamp() + interval '60 s', \
         lost_from = coalesce(lost_from, $5), lost_to = coalesce($6, lost_to) \
     FROM audit_streams s, tenants t \
     WHERE c.stream_id = $1 AND c.lease = $2::uuid AND c.leased_until > clock_timestamp() \
       AND s.id = c.stream_id AND s.state = 'active' AND s.updated_at = $7 \
       AND t.id = c.tenant_id AND t.state = 'active'";

/// Retries after 1, 2, 4 seconds and so on, up to a minute. If the stream was changed since the
/// claim, its position is kept: the new filter then judges the events that the old filter left out.
const FAILED: &str = "UPDATE audit_cursors c \
     SET sequence = CASE WHEN s.updated_at = $6 THEN $3 ELSE c.sequence END, \
         failures = failures + 1, failed_at = clock_timestamp(), last_error = $7, lease = NULL, leased_until = NULL, \
         next_try_at = clock_timestamp() + least(60, 2 ^ least(failures, 6)) * interval '1 s', \
         lost_from = coalesce(lost_from, $4), lost_to = coalesce($5, lost_to) \
     FROM audit_streams s WHERE c.stream_id = $1 AND c.lease = $2::uuid AND s.id = c.stream_id";

const RELEASE: &str = "UPDATE audit_cursors \
     SET lease = NULL, leased_until = NULL, next_try_at = clock_timestamp() \
     WHERE stream_id = $1 AND lease = $2::uuid";

const MAY_SEND: &str = "SELECT EXISTS (SELECT FROM audit_cursors c \
     JOIN audit_streams s ON s.id = c.stream_id AND s.state = 'active' AND s.updated_at = $3 \
     JOIN tenants t ON t.id = c.tenant_id AND t.state = 'active' \
     WHERE c.stream_id = $1 AND c.lease = $2::uuid \
       AND c.leased_until > clock_timestamp() + interval '17 s') AS permitted";

/// A stream that this node has claimed.
#[derive(Clone, QueryableByName)]
pub(super) struct Claimed {
    #[diesel(sql_type = Text)]
    pub(super) stream_id: String,
    #[diesel(sql_type = Text)]
    pub(super) tenant_id: String,
    #[diesel(sql_type = BigInt)]
    pub(super) sequence: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) checkpoint_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Integer)]
    pub(super) failures: i32,
    /// `false` for a while after the sink refused a checkpoint.
    #[diesel(sql_type = Bool)]
    pub(super) may_try_checkpoint: bool,
    #[diesel(sql_type = Text)]
    pub(super) sink: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) target: Option<String>,
    #[diesel(sql_type = Nullable<Jsonb>)]
    pub(super) filter: Option<Value>,
    /// The version of `sink`, `target` and `filter`.
    #[diesel(sql_type = Timestamptz)]
    pub(super) updated_at: DateTime<Utc>,
}

/// The progress of a stream in this turn.
#[derive(Clone, Default)]
pub(super) struct Reached {
    pub(super) sequence: i64,
    pub(super) checkpoint_at: Option<DateTime<Utc>>,
    /// Why the sink refused the newest checkpoint, until the refusal is recorded.
    pub(super) checkpoint_error: Option<String>,
    /// Whether a checkpoint failed in this turn.
    pub(super) has_failed_checkpoint: bool,
    /// Events that retention deleted before they were read, until the loss is recorded.
    pub(super) lost: Option<Lost>,
}

/// Claims the due streams. Returns the lease under which they are sent.
pub(super) async fn claim(db: &mut Db, most: usize) -> QueryResult<(String, Vec<Claimed>)> {
    let lease = new_id().to_string();
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    let claimed = prepared(CLAIM).bind::<Text, _>(&lease).bind::<Integer, _>(most).load(db).await?;
    Ok((lease, claimed))
}

/// Records the progress of the stream and renews the lease. Returns whether sending may continue.
pub(super) async fn hold(
    db: &mut Db,
    stream: &Claimed,
    lease: &str,
    reached: &Reached,
) -> QueryResult<bool> {
    let held = prepared(HOLD)
        .bind::<Text, _>(&stream.stream_id)
        .bind::<Text, _>(lease)
        .bind::<BigInt, _>(reached.sequence)
        .bind::<Nullable<Timestamptz>, _>(reached.checkpoint_at)
        .bind::<Nullable<BigInt>, _>(reached.lost.map(|lost| lost.from))
        .bind::<Nullable<BigInt>, _>(reached.lost.map(|lost| lost.to))
        .bind::<Timestamptz, _>(stream.updated_at)
        .bind::<Nullable<Text>, _>(&reached.checkpoint_error)
        .execute(db)
        .await?;
    Ok(held > 0)
}

#[derive(QueryableByName)]
struct Permitted {
    #[diesel(sql_type = Bool)]
    permitted: bool,
}

/// Returns whether the stream may still send.
///
/// The stream must be unchanged since it was claimed, and its lease must last longer than a request
/// can take.
pub(super) async fn may_send(db: &mut Db, stream: &Claimed, lease: &str) -> QueryResult<bool> {
    let check = prepared(MAY_SEND);
    let check = check.bind::<Text, _>(&stream.stream_id).bind::<Text, _>(lease);
    let found: Permitted = check.bind::<Timestamptz, _>(stream.updated_at).get_result(db).await?;
    Ok(found.permitted)
}

/// Records why the sink refused a message. Returns `false` if this node no longer has the lease.
pub(super) async fn failed(
    db: &mut Db,
    stream: &Claimed,
    lease: &str,
    reached: &Reached,
    error: &str,
) -> QueryResult<bool> {
    let failed = prepared(FAILED)
        .bind::<Text, _>(&stream.stream_id)
        .bind::<Text, _>(lease)
        .bind::<BigInt, _>(reached.sequence)
        .bind::<Nullable<BigInt>, _>(reached.lost.map(|lost| lost.from))
        .bind::<Nullable<BigInt>, _>(reached.lost.map(|lost| lost.to))
        .bind::<Timestamptz, _>(stream.updated_at)
        .bind::<Text, _>(error)
        .execute(db)
        .await?;
    Ok(failed > 0)
}

/// Releases the lease after the stream's turn.
pub(super) async fn release(db: &mut Db, stream_id: &str, lease: &str) -> QueryResult<()> {
    let release = prepared(RELEASE).bind::<Text, _>(stream_id).bind::<Text, _>(lease);
    release.execute(db).await.map(drop)
}

#[derive(QueryableByName)]
struct EventHead {
    #[diesel(sql_type = BigInt)]
    sequence: i64,
}

/// Returns the sequence of the tenant's last event.
pub(super) async fn head(db: &mut Db, tenant_id: &TenantId) -> QueryResult<i64> {
    let head = prepared("SELECT sequence FROM event_heads WHERE tenant_id = $1");
    let head: Option<EventHead> =
        head.bind::<Text, _>(tenant_id.as_str()).get_result(db).await.optional()?;
    Ok(head.map_or(0, |head| head.sequence))
}
