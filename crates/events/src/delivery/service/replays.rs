//! Starts and cancels replays. `progress.rs` shows them.

use std::collections::HashSet;

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{Done, execute},
    identity::Caller,
};
use authority_ids::{EndpointRef, EventRef, RecordId, RecordRef};
use authority_model::{
    proto::events::{
        CancelWebhookReplayRequest, ReplayEventRequest, ReplayEventResponse,
        ReplayWebhookEndpointRequest, ReplayWebhookEndpointResponse, WebhookReplay,
    },
    validate::Violations,
    wire::Time,
};
use authority_store::{self as store, Db, RunQueryDsl, new_id};
use authority_webhook::event_types::Selection;
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz},
};

use super::{
    super::{
        make::{self, Recipient},
        shared::Shared,
    },
    call::{Call, Seen},
    progress::{KIND, show},
};
use crate::log;

/// The most events of a replay.
const MOST: i64 = 1_000_000;

/// The events in a time range. Ids begin with the time at which the event was numbered.
const RANGE: &str = "SELECT min(last_sequence - size + 1) AS first, max(last_sequence) AS last FROM events \
     WHERE tenant_id = $1 AND id >= time_bound('svc:event:', $2) \
       AND ($3 IS NULL OR id < time_bound('svc:event:', $3))";

const INSERT: &str = "INSERT INTO webhook_replays (id, tenant_id, endpoint_id, state, \
         after_sequence, until_sequence, position, event_types, only_state, made, created_by) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";

const RUNNING: &str = "SELECT id FROM webhook_replays WHERE endpoint_id = $1 AND state = 'running'";

/// Stops a running replay and cancels its open deliveries. A replay in the state `done` becomes
/// cancelled only if it still had open deliveries.
const CANCEL: [&str; 2] = [
    "UPDATE webhook_replays SET state = 'cancelled', updated_at = clock_timestamp() \
     WHERE id = $1 AND state = 'running'",
    "WITH cancelled AS ( \
         UPDATE webhook_deliveries SET state = 'cancelled', ended_at = clock_timestamp() \
         WHERE replay_id = $1 AND state = 'open' RETURNING id) \
     UPDATE webhook_replays SET state = 'cancelled', updated_at = clock_timestamp() \
     WHERE id = $1 AND state = 'done' AND EXISTS (SELECT FROM cancelled)",
];

impl Shared {
    pub(super) async fn start_replay(
        &self,
        call: Call<ReplayWebhookEndpointRequest>,
    ) -> Result<Done<ReplayWebhookEndpointResponse>, ApiError> {
        let Call { caller, key, request } = call;
        let moment = |time: Option<Time>| time.and_then(Time::moment);
        let (since, until) = (moment(request.since), moment(request.until));
        let since = since.ok_or_else(|| ApiError::field("since", "is required"))?;
        let (scope, now, by) = (caller.scope(), self.clock.now(), caller.actor.clone());
        if until.is_some_and(|until| until <= since) {
            return Err(ApiError::field("until", "must be after `since`"));
        }
        if let Err(fault) = Selection::of_record(&request.event_types) {
            return Err(ApiError::field("event_types", fault.to_string()));
        }
        let done = execute(&self.store, &scope, now, key, async move |db| {
            let endpoint = Seen::lock(db, &request.id).await?;
            let mut faults = untaken(&request.event_types, &endpoint.event_types);
            if since > now {
                faults.add("since", "must not be in the future");
            }
            ApiError::unless_clean(faults)?;
            let (after, until) = range(db, &endpoint.tenant_id, since, until).await?;
            if until - after > MOST {
                let text = format!(
                    "covers {} events, more than {MOST}; use a later time or set `until`",
                    until - after
                );
                return Err(ApiError::field("since", text));
            }
            let replay_id = String::from(RecordId::new(KIND, new_id()));
            let replay = New {
                id: &replay_id,
                tenant_id: &endpoint.tenant_id,
                endpoint_id: &request.id,
                state: if after < until { "running" } else { "done" },
                after,
                until,
                position: after,
                event_types: &request.event_types,
                only: &request.only,
                made: 0,
                created_by: &by,
            };
            if !replay.insert(db).await? {
                return Err(running(db, &request.id).await?);
            }
            Ok(ReplayWebhookEndpointResponse { replay_id })
        });
        let done = done.await?;
        self.replays.notify_one();
        Ok(done)
    }

    pub(super) async fn replay_event(
        &self,
        call: Call<ReplayEventRequest>,
    ) -> Result<Done<ReplayEventResponse>, ApiError> {
        let Call { caller, key, request } = call;
        let (scope, now, by) = (caller.scope(), self.clock.now(), caller.actor.clone());
        let done = execute(&self.store, &scope, now, key, async move |db| {
            let endpoint = Seen::lock(db, &request.endpoint_id).await?;
            let (endpoint_id, id) =
                (EndpointRef::from(request.endpoint_id), EventRef::from(request.id));
            let named = HashSet::from([(&*endpoint.tenant_id, &id)]);
            let found = log::by_id(db, &named).await.map_err(store::Error::from)?.pop();
            let event = found.ok_or_else(|| ApiError::not_found("event", &id))?;
            if make::room(db, &endpoint_id).await.map_err(store::Error::from)? <= 0 {
                let text = "the endpoint has 10000 open deliveries; replay when some have ended";
                return Err(ApiError::new(ErrorCode::LimitReached, text));
            }
            let replay_id = RecordRef::from(RecordId::new(KIND, new_id()));
            let replay = New {
                id: &replay_id,
                tenant_id: &endpoint.tenant_id,
                endpoint_id: &endpoint_id,
                state: "done",
                after: event.sequence - 1,
                until: event.sequence,
                position: event.sequence,
                event_types: &[],
                only: "all",
                made: 1,
                created_by: &by,
            };
            replay.insert(db).await?;
            let to = Recipient { endpoint_id: &endpoint_id, tenant_id: &endpoint.tenant_id };
            let made = make::deliveries(db, to, Some(&replay_id), &[&event]).await;
            let delivery_id = made.map_err(store::Error::from)?.pop().unwrap_or_default();
            Ok(ReplayEventResponse { replay_id: replay_id.into(), delivery_id })
        });
        let done = done.await?;
        self.wake.notify_one();
        Ok(done)
    }

    /// Cancels a replay. A replay without running work or open deliveries is not changed.
    pub(super) async fn cancel_replay(
        &self,
        caller: &Caller,
        request: CancelWebhookReplayRequest,
    ) -> Result<WebhookReplay, ApiError> {
        let cancelled = self.store.write_tx(&caller.scope(), async move |db| {
            Seen::lock(db, &request.id).await?;
            show(db, &request.id, &request.replay_id).await?;
            for statement in CANCEL {
                let changed = diesel::sql_query(statement)
                    .bind::<Text, _>(&request.replay_id)
                    .execute(db)
                    .await;
                changed.map_err(store::Error::from)?;
            }
            show(db, &request.id, &request.replay_id).await
        });
        cancelled.await
    }
}

/// Returns the range of sequences in a time range, with an exclusive start.
///
/// Without events in the time range, the result is empty.
async fn range(
    db: &mut Db,
    tenant_id: &str,
    since: DateTime<Utc>,
    until: Option<DateTime<Utc>>,
) -> Result<(i64, i64), ApiError> {
    let found: Range = diesel::sql_query(RANGE)
        .bind::<Text, _>(tenant_id)
        .bind::<Timestamptz, _>(since)
        .bind::<Nullable<Timestamptz>, _>(until)
        .get_result(db)
        .await
        .map_err(store::Error::from)?;
    Ok(found.first.zip(found.last).map_or((0, 0), |(first, last)| (first - 1, last)))
}

/// Reports the patterns that match none of the endpoint's event types.
fn untaken(asked: &[String], event_types: &[String]) -> Violations {
    let mut found = Violations::default();
    // Both lists were validated before.
    let of = |patterns: &[String]| Selection::of_record(patterns).unwrap_or_default();
    let takes = of(event_types);
    for (index, pattern) in asked.iter().enumerate() {
        let selection = of(std::slice::from_ref(pattern));
        if !selection.families().any(|family| takes.families().any(|taken| taken == family)) {
            let problem = format!("`{pattern}` matches no event type of the endpoint");
            found.add(&format!("event_types[{index}]"), problem);
        }
    }
    found
}

/// Returns the error for starting a second replay. It names the running one.
async fn running(db: &mut Db, endpoint_id: &str) -> Result<ApiError, ApiError> {
    let found = diesel::sql_query(RUNNING).bind::<Text, _>(endpoint_id).get_result(db).await;
    let found: Option<Running> = found.optional().map_err(store::Error::from)?;
    let refused = |text| ApiError::new(ErrorCode::TransitionNotAllowed, text);
    Ok(match found {
        Some(Running { id }) => {
            let text =
                format!("the replay `{id}` of this endpoint is running; wait for it or cancel it");
            refused(text).with("replay_id", id)
        }
        // The other replay has just ended.
        None => refused("another replay of this endpoint was running; try again".to_owned()),
    })
}

/// A new replay.
struct New<'a> {
    id: &'a str,
    tenant_id: &'a str,
    endpoint_id: &'a str,
    state: &'a str,
    after: i64,
    until: i64,
    position: i64,
    event_types: &'a [String],
    only: &'a str,
    made: i64,
    created_by: &'a str,
}

impl New<'_> {
    /// Inserts the replay. Returns `false` if another replay is running.
    async fn insert(&self, db: &mut Db) -> Result<bool, ApiError> {
        let inserted = diesel::sql_query(INSERT)
            .bind::<Text, _>(self.id)
            .bind::<Text, _>(self.tenant_id)
            .bind::<Text, _>(self.endpoint_id)
            .bind::<Text, _>(self.state)
            .bind::<BigInt, _>(self.after)
            .bind::<BigInt, _>(self.until)
            .bind::<BigInt, _>(self.position)
            .bind::<Array<Text>, _>(self.event_types)
            .bind::<Text, _>(self.only)
            .bind::<BigInt, _>(self.made)
            .bind::<Text, _>(self.created_by)
            .execute(db)
            .await;
        Ok(inserted.map_err(store::Error::from)? > 0)
    }
}

#[derive(QueryableByName)]
struct Range {
    #[diesel(sql_type = Nullable<BigInt>)]
    first: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    last: Option<i64>,
}

#[derive(QueryableByName)]
struct Running {
    #[diesel(sql_type = Text)]
    id: String,
}
