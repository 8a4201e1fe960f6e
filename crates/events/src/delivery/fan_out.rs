//! Creates deliveries of events.
//!
//! Each endpoint's cursor moves along its tenant's log. When the cursor passes an event that the
//! endpoint accepts, a delivery is created in the same transaction.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use authority_ids::{EndpointRef, TenantRef};
use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store, locks::FAN_OUT, prepared};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Integer, Nullable, Text},
};
use futures_util::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    acceptance::Acceptance,
    lost,
    make::{self, Recipient},
};
use crate::{
    log::{self, Event, LogPart},
    lost::Lost,
};

/// How often cursors are compared with the log without a wake-up.
const POLL: Duration = Duration::from_millis(500);
/// The most events read for an endpoint before other endpoints have their turn.
const BATCH: i64 = 500;
/// The most sequence numbers that a batch spans. Events of types that the endpoint does not accept
/// are included, but not read.
const WINDOW: i64 = 5_000;
/// How long the counted room of an endpoint is valid. During that time, an endpoint without room is
/// skipped.
const COUNTED: Duration = Duration::from_secs(5);
/// How many endpoints are processed concurrently.
const ABREAST: usize = 2;

/// The active endpoints behind their tenant's log, alternating between tenants.
const BEHIND: &str = "SELECT endpoint_id FROM ( \
         SELECT c.endpoint_id, row_number() OVER ( \
             PARTITION BY e.tenant_id ORDER BY h.sequence - c.sequence) AS turn \
         FROM webhook_cursors c \
         JOIN webhook_endpoints e ON e.id = c.endpoint_id AND e.state = 'active' \
         JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
         JOIN event_heads h ON h.tenant_id = e.tenant_id AND h.sequence > c.sequence) AS behind \
     ORDER BY turn";

/// Lets one node at a time process an endpoint. The cursor's row is locked only when it advances,
/// because the results of attempts are recorded in the same row.
const TURN: &str = "SELECT pg_try_advisory_xact_lock($1, hashtext($2)) AS is_ours";

/// The endpoint is locked until the deliveries exist. Deleting the endpoint then cancels them as
/// well. Other transactions that move the cursor also lock the endpoint; a locked endpoint is
/// skipped.
const ENDPOINT: &str = "SELECT e.tenant_id, e.event_types, e.filter FROM webhook_endpoints e \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     WHERE e.id = $1 AND e.state = 'active' FOR SHARE OF e SKIP LOCKED";

const CURSOR: &str = "SELECT c.sequence, coalesce(h.sequence, 0) AS head, \
            (SELECT e.last_sequence - e.size + 1 FROM events e \
             WHERE e.tenant_id = c.tenant_id AND e.last_sequence > c.sequence \
             ORDER BY e.last_sequence LIMIT 1) AS next \
     FROM webhook_cursors c LEFT JOIN event_heads h ON h.tenant_id = c.tenant_id \
     WHERE c.endpoint_id = $1";

const ADVANCE: &str = "UPDATE webhook_cursors \
     SET sequence = $2, filter_errors = filter_errors + $3, \
         lost_from = coalesce(lost_from, $4), lost_to = coalesce($5, lost_to) \
     WHERE endpoint_id = $1";

/// Fans events out to endpoints.
pub(super) struct FanOut {
    store: Store,
    /// Notified when new events are numbered.
    numbered: Arc<Notify>,
    /// Notified when there are new deliveries.
    made: Arc<Notify>,
    /// The room of each endpoint, as last counted.
    rooms: Mutex<HashMap<EndpointRef, Room>>,
}

/// How many more deliveries of an endpoint may be open.
///
/// Deliveries that ended after the count are still included in it.
#[derive(Clone, Copy)]
struct Room {
    left: i64,
    counted: Instant,
}

impl FanOut {
    pub(super) fn new(store: Store, numbered: Arc<Notify>, made: Arc<Notify>) -> Self {
        Self { store, numbered, made, rooms: Mutex::default() }
    }

    pub(super) fn worker(self) -> Worker {
        let shared = Arc::new(self);
        let worker = Worker::endless("webhook_fan_out", move |context| {
            let fan_out = Arc::clone(&shared);
            async move {
                fan_out.run(&context).await;
                Ok::<_, store::Error>(())
            }
        });
        worker.with_rounds(POLL)
    }

    async fn run(&self, context: &Context) {
        loop {
            // A failed round is tried again at the next poll.
            while context.stopped().now_or_never().is_none()
                && context.round(self.round()).await.is_ok_and(|has_more| has_more)
            {}
            tokio::select! {
                biased;
                () = context.stopped() => return,
                () = self.numbered.notified() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// Processes one batch for each endpoint that is behind. Returns whether there may be more.
    async fn round(&self) -> Result<bool, store::Error> {
        let behind = self.store.read_tx(&Scope::service(), async move |db| {
            let behind: Vec<Behind> = prepared(BEHIND).load(db).await?;
            Ok::<_, store::Error>(behind)
        });
        let behind = behind.await?;
        self.rooms.lock().retain(|_, room| room.counted.elapsed() < COUNTED);
        let is_full = |one: &Behind| {
            self.rooms.lock().get(&one.endpoint_id).is_some_and(|room| room.left <= 0)
        };
        let ready = behind.into_iter().filter(|one| !is_full(one)).collect::<Vec<_>>();
        let done: Vec<_> = stream::iter(ready)
            .map(|one| self.advance(one.endpoint_id))
            .buffer_unordered(ABREAST)
            .collect()
            .await;
        // A failure of one endpoint does not stop the others.
        let mut has_more = false;
        let mut failed = None;
        for one in done {
            match one {
                Ok(more) => has_more |= more,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(has_more), Err)
    }

    async fn advance(&self, endpoint_id: EndpointRef) -> Result<bool, store::Error> {
        let id = endpoint_id.clone();
        let room = self.rooms.lock().get(&id).copied().filter(|room| room.left >= BATCH);
        let done = self.store.write_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(advance(db, &id, room).await?)
        });
        let Some(step) = done.await? else { return Ok(false) };
        if step.deliveries > 0 {
            self.made.notify_one();
        }
        if step.filter_errors > 0 {
            let errors = step.filter_errors.unsigned_abs();
            metrics::counter!("authority_webhook_filter_errors_total").increment(errors);
        }
        if let Some(events) = step.lost {
            lost::report(&endpoint_id, events);
        }
        let is_full = step.room.left <= 0;
        self.rooms.lock().insert(endpoint_id, step.room);
        Ok(step.has_more && !is_full)
    }
}

/// The result of one batch.
struct FanOutBatch {
    deliveries: usize,
    filter_errors: i64,
    /// Events that retention deleted before they were read.
    lost: Option<Lost>,
    /// The endpoint's room after the batch.
    room: Room,
    has_more: bool,
}

/// Judges a batch of events for an endpoint. Returns `None` if the endpoint is locked by another
/// transaction, paused, disabled or deleted.
async fn advance(
    db: &mut Db,
    endpoint_id: &EndpointRef,
    room: Option<Room>,
) -> QueryResult<Option<FanOutBatch>> {
    let turn = prepared(TURN).bind::<Integer, _>(FAN_OUT).bind::<Text, _>(endpoint_id.as_str());
    let Turn { is_ours: true } = turn.get_result(db).await? else { return Ok(None) };
    let endpoint: Option<Endpoint> =
        prepared(ENDPOINT).bind::<Text, _>(endpoint_id.as_str()).get_result(db).await.optional()?;
    let Some(endpoint) = endpoint else { return Ok(None) };
    let cursor: Option<Cursor> =
        prepared(CURSOR).bind::<Text, _>(endpoint_id.as_str()).get_result(db).await.optional()?;
    let Some(cursor) = cursor else { return Ok(None) };
    let mut room = match room {
        Some(room) => room,
        None => Room { left: make::room(db, endpoint_id).await?, counted: Instant::now() },
    };
    if room.left <= 0 {
        return Ok(Some(FanOutBatch {
            deliveries: 0,
            filter_errors: 0,
            lost: None,
            room,
            has_more: false,
        }));
    }
    let lost = Lost::before(cursor.sequence, cursor.next, cursor.head);
    let mut acceptance =
        Acceptance::new(endpoint_id, &endpoint.event_types, endpoint.filter.as_deref());
    let from = lost.map_or(cursor.sequence, |lost| lost.to);
    let until = cursor.head.min(from + WINDOW);
    let most = BATCH.min(room.left);
    let (tenant_id, types) = (&endpoint.tenant_id, acceptance.types());
    let LogPart { events, reached } =
        log::read(db, tenant_id, (from, until), types.as_deref(), most).await?;
    let taken: Vec<&Event> = events.iter().filter(|event| acceptance.takes(event)).collect();
    let to = Recipient { endpoint_id, tenant_id };
    make::deliveries(db, to, None, &taken).await?;
    room.left -= i64::try_from(taken.len()).unwrap_or_default();
    prepared(ADVANCE)
        .bind::<Text, _>(endpoint_id.as_str())
        .bind::<BigInt, _>(reached)
        .bind::<BigInt, _>(acceptance.errors)
        .bind::<Nullable<BigInt>, _>(lost.map(|lost| lost.from))
        .bind::<Nullable<BigInt>, _>(lost.map(|lost| lost.to))
        .execute(db)
        .await?;
    Ok(Some(FanOutBatch {
        deliveries: taken.len(),
        filter_errors: acceptance.errors,
        lost,
        room,
        has_more: reached < cursor.head,
    }))
}

#[derive(QueryableByName)]
struct Behind {
    #[diesel(sql_type = Text, deserialize_as = String)]
    endpoint_id: EndpointRef,
}

#[derive(QueryableByName)]
struct Turn {
    #[diesel(sql_type = Bool)]
    is_ours: bool,
}

#[derive(QueryableByName)]
struct Endpoint {
    #[diesel(sql_type = Text, deserialize_as = String)]
    tenant_id: TenantRef,
    #[diesel(sql_type = Array<Text>)]
    event_types: Vec<String>,
    #[diesel(sql_type = Nullable<Text>)]
    filter: Option<String>,
}

#[derive(QueryableByName)]
struct Cursor {
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    /// The sequence of the tenant's last event.
    #[diesel(sql_type = BigInt)]
    head: i64,
    /// The lowest sequence in the row that has the first event after the cursor.
    #[diesel(sql_type = Nullable<BigInt>)]
    next: Option<i64>,
}
