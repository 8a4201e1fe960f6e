//! An endpoint's position in the log of events.
//!
//! The head is read without a lock, and no event is missed: an event that is committed after the response is
//! numbered after this statement, since the sequencer numbers only what is committed. Its transaction raises
//! the tenant's head, whose committed value never falls, so the event's number is above every value that a
//! statement has read before. A transaction that is numbering right now has not committed: its events are
//! above the head read here, too, and are delivered as well. They are of changes before the response, which
//! an endpoint may receive; the other way round, one would be lost.

use std::collections::HashMap;

use authority_api::identity::Caller;
use authority_core::store::{Db, RunQueryDsl};
use authority_model::{
    proto::events::{LostEvents, WebhookEndpoint},
    schema::webhook_cursors,
};
use diesel::{ExpressionMethods, QueryDsl, sql_types::Text};

use crate::{Error, Registry};

/// Shows which events were lost.
pub(super) async fn fill_lost(
    registry: &Registry,
    caller: &Caller,
    endpoints: &mut [WebhookEndpoint],
) -> Result<(), Error> {
    let ids: Vec<String> = endpoints.iter().map(|endpoint| endpoint.id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let rows: Vec<(String, Option<i64>, Option<i64>)> = webhook_cursors::table
            .filter(webhook_cursors::endpoint_id.eq_any(ids))
            .filter(webhook_cursors::lost_to.is_not_null())
            .select((
                webhook_cursors::endpoint_id,
                webhook_cursors::lost_from,
                webhook_cursors::lost_to,
            ))
            .load(db)
            .await?;
        Ok::<_, Error>(rows)
    });
    let found = read
        .await?
        .into_iter()
        .filter_map(|(id, from, to)| from.zip(to).map(|(from, to)| (id, LostEvents { from, to })));
    let mut found: HashMap<String, LostEvents> = found.collect();
    for endpoint in endpoints {
        endpoint.lost = found.remove(&endpoint.id);
    }
    Ok(())
}

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
        "UPDATE webhook_cursors SET failing_since = NULL, waits_until = NULL, breaker = DEFAULT, \
             breaker_count = DEFAULT, breaker_until = NULL \
         WHERE endpoint_id = $1 AND tenant_id = $2",
    )
    .bind::<Text, _>(&endpoint.id)
    .bind::<Text, _>(endpoint.tenant_id())
    .execute(db)
    .await?;
    Ok(())
}

/// Passes over what it has not received, also of replays; that does not count as lost.
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
