//! Replays: deliver past events again. A replay reads the tenant's log from a stored position and
//! creates deliveries in the lane with the lowest priority.

use std::{collections::HashSet, sync::Arc, time::Duration};

use authority_ids::{EndpointRef, EventRef, RecordRef, TenantRef};
use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Db, RunQueryDsl, Scope};
use authority_webhook::event_types::{EventType, Selection};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text},
};
use futures_util::FutureExt;

use super::{
    acceptance::Acceptance,
    lost,
    make::{self, Recipient},
    shared::Shared,
};
use crate::{
    log::{self, Event, LogPart},
    lost::Lost,
};

/// How often the worker looks for replays without a wake-up.
const POLL: Duration = Duration::from_millis(500);
/// The most events of a replay before other replays have their turn.
const BATCH: i64 = 500;

const RUNNING: &str = "SELECT r.id FROM webhook_replays r \
     JOIN webhook_endpoints e ON e.id = r.endpoint_id AND e.state = 'active' \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     WHERE r.state = 'running' ORDER BY r.updated_at";

/// Skips locked rows: another node is processing the replay, or a transaction cancels it or changes
/// its endpoint.
const REPLAY: &str = "SELECT r.endpoint_id, r.tenant_id, r.event_types AS narrowed, r.only_state, \
            r.position, r.until_sequence, e.event_types, e.filter \
     FROM webhook_replays r \
     JOIN webhook_endpoints e ON e.id = r.endpoint_id AND e.state = 'active' \
     WHERE r.id = $1 AND r.state = 'running' \
     FOR SHARE OF e SKIP LOCKED FOR UPDATE OF r SKIP LOCKED";

/// The events with a delivery to this endpoint in the given states.
const HAVING: &str = "SELECT DISTINCT event_id FROM webhook_deliveries \
     WHERE endpoint_id = $1 AND event_id = ANY ($2) AND state = ANY ($3)";

const ADVANCE: &str = "UPDATE webhook_replays \
     SET position = $2, made = made + $3, updated_at = clock_timestamp(), \
         state = CASE WHEN $2 >= until_sequence THEN 'done' ELSE state END, \
         lost_from = coalesce(lost_from, $4), lost_to = coalesce($5, lost_to) \
     WHERE id = $1";

pub(super) fn worker(shared: Arc<Shared>) -> Worker {
    let worker = Worker::endless("webhook_replays", move |context| {
        let shared = Arc::clone(&shared);
        async move {
            run(&shared, &context).await;
            Ok::<_, store::Error>(())
        }
    });
    worker.with_rounds(POLL)
}

async fn run(shared: &Arc<Shared>, context: &Context) {
    loop {
        // A failed round is retried at the next poll.
        while context.stopped().now_or_never().is_none()
            && context.round(round(shared)).await.is_ok_and(|has_more| has_more)
        {}
        tokio::select! {
            biased;
            () = context.stopped() => return,
            () = shared.replays.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Processes one batch of each replay. Returns whether there may be more.
async fn round(shared: &Shared) -> Result<bool, store::Error> {
    let running = shared.store.read_tx(&Scope::service(), async move |db| {
        let running: Vec<Id> = diesel::sql_query(RUNNING).load(db).await?;
        Ok::<_, store::Error>(running)
    });
    let mut has_more = false;
    for Id { id } in running.await? {
        let stepped = shared.store.write_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(step(db, &id).await?)
        });
        let Some(step) = stepped.await? else { continue };
        if step.deliveries > 0 {
            shared.wake.notify_one();
        }
        if let Some(events) = step.lost {
            lost::report(&step.endpoint_id, events);
        }
        has_more |= step.has_more;
    }
    Ok(has_more)
}

/// The result of one batch.
struct ReplayBatch {
    endpoint_id: EndpointRef,
    deliveries: usize,
    /// Events that retention deleted before they were read.
    lost: Option<Lost>,
    has_more: bool,
}

/// Processes one batch of a replay.
///
/// Returns `None` if another transaction has locked the replay, or its endpoint has no room.
async fn step(db: &mut Db, id: &RecordRef) -> QueryResult<Option<ReplayBatch>> {
    let found = diesel::sql_query(REPLAY).bind::<Text, _>(id.as_str()).get_result(db).await;
    let found: Option<Replay> = found.optional()?;
    let Some(replay) = found else { return Ok(None) };
    let room = make::room(db, &replay.endpoint_id).await?;
    if room <= 0 {
        return Ok(None);
    }
    let (tenant_id, until, most) = (&replay.tenant_id, replay.until_sequence, BATCH.min(room));
    let LogPart { events, reached } =
        log::read(db, tenant_id, (replay.position, until), None, most).await?;
    let first = events.as_slice().first().map(|event| event.sequence);
    let lost = Lost::before(replay.position, first, until);
    let taken = replay.taken(&events);
    let taken = replay.wanted(db, taken).await?;
    let to = Recipient { endpoint_id: &replay.endpoint_id, tenant_id };
    make::deliveries(db, to, Some(id), &taken).await?;
    diesel::sql_query(ADVANCE)
        .bind::<Text, _>(id.as_str())
        .bind::<BigInt, _>(reached)
        .bind::<BigInt, _>(i64::try_from(taken.len()).unwrap_or_default())
        .bind::<Nullable<BigInt>, _>(lost.map(|lost| lost.from))
        .bind::<Nullable<BigInt>, _>(lost.map(|lost| lost.to))
        .execute(db)
        .await?;
    let deliveries = taken.len();
    Ok(Some(ReplayBatch {
        endpoint_id: replay.endpoint_id,
        deliveries,
        lost,
        has_more: reached < until,
    }))
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text, deserialize_as = String)]
    id: RecordRef,
}

#[derive(QueryableByName)]
struct EventId {
    #[diesel(sql_type = Text, deserialize_as = String)]
    event_id: EventRef,
}

/// A running replay, with its endpoint's current event types and filter.
#[derive(QueryableByName)]
struct Replay {
    #[diesel(sql_type = Text, deserialize_as = String)]
    endpoint_id: EndpointRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    tenant_id: TenantRef,
    /// The patterns of event types to replay; all types if empty.
    #[diesel(sql_type = Array<Text>)]
    narrowed: Vec<String>,
    #[diesel(sql_type = Text)]
    only_state: String,
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = BigInt)]
    until_sequence: i64,
    #[diesel(sql_type = Array<Text>)]
    event_types: Vec<String>,
    #[diesel(sql_type = Nullable<Text>)]
    filter: Option<String>,
}

impl Replay {
    /// Returns the events of the replay's types that the endpoint accepts.
    fn taken<'e>(&self, events: &'e [Event]) -> Vec<&'e Event> {
        let mut acceptance =
            Acceptance::new(&self.endpoint_id, &self.event_types, self.filter.as_deref());
        let narrowed = match self.narrowed.as_slice() {
            [] => None,
            patterns => Selection::parse(patterns).ok(),
        };
        let is_asked_for = |event: &Event| {
            narrowed.as_ref().is_none_or(|selection| {
                let event_type = EventType::named(&event.event_type);
                event_type.is_some_and(|event_type| selection.takes(event_type, &().into()))
            })
        };
        events.iter().filter(|event| is_asked_for(event) && acceptance.takes(event)).collect()
    }

    /// Returns the events with deliveries in the state that the replay requires.
    async fn wanted<'e>(&self, db: &mut Db, events: Vec<&'e Event>) -> QueryResult<Vec<&'e Event>> {
        let ids: Vec<&str> = events.iter().map(|event| &*event.id).collect();
        let sent = match self.only_state.as_str() {
            "all" => return Ok(events),
            _ => self.having(db, &ids, &["delivered", "open"]).await?,
        };
        let dead = match self.only_state.as_str() {
            "dead" => Some(self.having(db, &ids, &["dead"]).await?),
            _ => None,
        };
        let is_wanted = |event: &&Event| {
            !sent.contains(&event.id) && dead.as_ref().is_none_or(|dead| dead.contains(&event.id))
        };
        Ok(events.into_iter().filter(is_wanted).collect())
    }

    async fn having(
        &self,
        db: &mut Db,
        ids: &[&str],
        states: &[&str],
    ) -> QueryResult<HashSet<EventRef>> {
        let found: Vec<EventId> = diesel::sql_query(HAVING)
            .bind::<Text, _>(self.endpoint_id.as_str())
            .bind::<Array<Text>, _>(ids)
            .bind::<Array<Text>, _>(states)
            .load(db)
            .await?;
        Ok(found.into_iter().map(|row| row.event_id).collect())
    }
}
