//! An endpoint's position in the log of events.
//!
//! The head is read without a lock, but the endpoint misses no event of a change that is committed
//! after the response. The sequencer numbers only committed events: it numbers such an event after
//! this statement. Each numbering raises the tenant's head, and the committed head never falls. The
//! event's number is therefore above the head that is read here. The endpoint may also receive
//! events of earlier changes: a numbering transaction that runs now assigns numbers above the head
//! read here.

use std::collections::HashMap;

use authority_api::identity::Caller;
use authority_model::{
    proto::events::{LostEvents, WebhookEndpoint},
    wire::Time,
};
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz},
};

use crate::flow::{error::Error, registry::Registry};

/// The lost events of these endpoints, and the time until which deliveries are held: the later of
/// the breaker's time and the `Retry-After` time. A time in the past has no effect.
const COMPUTED: &str = "SELECT c.endpoint_id, c.lost_from, c.lost_to, c.failing_since, held.until AS held_until, \
            CASE WHEN held.until = held.breaker THEN 'breaker' \
                 WHEN held.until IS NOT NULL THEN 'retry_after' END AS held_by \
     FROM webhook_cursors c \
     CROSS JOIN LATERAL (SELECT \
         CASE WHEN c.breaker <> 'closed' AND c.breaker_until > now() THEN c.breaker_until END AS breaker, \
         CASE WHEN c.waits_until > now() THEN c.waits_until END AS waits) AS of \
     CROSS JOIN LATERAL (SELECT of.breaker, greatest(of.breaker, of.waits) AS until) AS held \
     WHERE c.endpoint_id = ANY ($1)";

#[derive(QueryableByName)]
struct Computed {
    #[diesel(sql_type = Text)]
    endpoint_id: String,
    #[diesel(sql_type = Nullable<BigInt>)]
    lost_from: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    lost_to: Option<i64>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    held_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    held_by: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    failing_since: Option<DateTime<Utc>>,
}

/// Sets the events that were lost and the reason why deliveries are held.
pub(super) async fn fill_computed(
    registry: &Registry,
    caller: &Caller,
    endpoints: &mut [WebhookEndpoint],
) -> Result<(), Error> {
    let ids: Vec<String> = endpoints.iter().map(|endpoint| endpoint.id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let rows: Vec<Computed> =
            diesel::sql_query(COMPUTED).bind::<Array<Text>, _>(ids).load(db).await?;
        Ok::<_, Error>(rows)
    });
    let found = read.await?.into_iter().map(|row| (row.endpoint_id.clone(), row));
    let mut found: HashMap<String, Computed> = found.collect();
    for endpoint in endpoints {
        let Some(row) = found.remove(&endpoint.id) else { continue };
        endpoint.lost = row.lost_from.zip(row.lost_to).map(|(from, to)| LostEvents { from, to });
        endpoint.held_until = row.held_until.map(Time::from);
        endpoint.held_by = row.held_by;
        endpoint.failing_since = row.failing_since.map(Time::from);
    }
    Ok(())
}

/// Creates the endpoint's cursor at the head of the log.
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

/// Continues at the stored position and clears the recorded failures.
pub(super) async fn resume(db: &mut Db, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    diesel::sql_query(
        "UPDATE webhook_cursors SET failing_since = NULL, dead_since = NULL, waits_until = NULL, \
             breaker = DEFAULT, breaker_count = DEFAULT, breaker_until = NULL \
         WHERE endpoint_id = $1 AND tenant_id = $2",
    )
    .bind::<Text, _>(&endpoint.id)
    .bind::<Text, _>(endpoint.tenant_id())
    .execute(db)
    .await?;
    Ok(())
}

/// Skips all pending events, including replays. They do not count as lost.
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
        "UPDATE webhook_replays SET state = 'cancelled', updated_at = clock_timestamp() \
         WHERE endpoint_id = $1 AND tenant_id = $2 AND state = 'running'",
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
