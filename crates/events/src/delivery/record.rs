//! Records the results of claimed deliveries, many in one transaction.
//!
//! A result is recorded only if this node still has the delivery's lease. Times are by the
//! database's clock.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use authority_ids::{DeliveryRef, EndpointRef};
use authority_store::{Db, RunQueryDsl, prepared};
use authority_webhook::retry::{
    Breaker, DeliveryNext, DisableReason, EndpointNext, ErrorClass, Failing, after_attempt,
};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, Integer, Nullable, Text, Timestamptz},
};

use super::{
    attempt::{Ending, Outcome},
    breaker,
    job::Job,
    lost,
};
use crate::lost::Lost;

const CURSORS: &str = "SELECT endpoint_id, breaker, breaker_count, breaker_until, waits_until, \
            failing_since, dead_since, clock_timestamp() AS now \
     FROM webhook_cursors WHERE endpoint_id = ANY ($1) ORDER BY endpoint_id FOR UPDATE";

/// Selects the deliveries that this node still leases. Skips rows that another transaction has
/// locked to cancel them. The rows are looked up by their ids alone. Otherwise a plan that is
/// cached while the table is empty may use the index of open deliveries.
const OURS: &str = "SELECT d.id FROM unnest($1, $2, $3) AS job (id, lease, attempts) \
     CROSS JOIN LATERAL ( \
         SELECT id, lease, attempts, state FROM webhook_deliveries WHERE id = job.id \
         FOR UPDATE SKIP LOCKED) AS d \
     WHERE d.lease = job.lease::uuid AND d.attempts = job.attempts AND d.state = 'open'";

const DELIVERIES: &str = "UPDATE webhook_deliveries d \
     SET state = n.state, attempts = d.attempts + n.spent, lane = greatest(d.lane, n.lane), \
         due_at = coalesce(n.due_at, d.due_at), lease = NULL, leased_until = NULL, \
         last_status = CASE n.spent WHEN 1 THEN n.status ELSE d.last_status END, \
         last_error = CASE n.spent WHEN 1 THEN n.class ELSE d.last_error END, \
         ended_at = CASE n.state WHEN 'open' THEN NULL ELSE clock_timestamp() END \
     FROM unnest($1, $2, $3, $4, $5, $6, $7) AS n (id, state, spent, lane, due_at, status, class) \
     WHERE d.id = n.id";

const ATTEMPTS: &str = "INSERT INTO webhook_attempts \
         (id, tenant_id, attempt, at, status, error_class, latency_ms, body_start) \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";

const ENDPOINTS: &str = "UPDATE webhook_cursors c \
     SET breaker = n.breaker, breaker_count = n.count, breaker_until = n.until, \
         waits_until = n.waits, failing_since = n.failing, dead_since = n.dead, \
         last_success_at = coalesce(n.success, c.last_success_at) \
     FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
         AS n (endpoint_id, breaker, count, until, waits, failing, success, dead) \
     WHERE c.endpoint_id = n.endpoint_id";

const RETRY: i32 = 1;
/// The delay before a delivery that was not sent can be claimed again.
const UNSPENT: TimeDelta = TimeDelta::seconds(1);

/// A claimed delivery and its result.
pub(super) struct FinishedDelivery {
    pub(super) job: Arc<Job>,
    pub(super) ending: Ending,
    /// Whether the endpoint gets no deliveries until this result is recorded.
    pub(super) stops: bool,
}

/// An endpoint to disable, and the reason.
pub(super) type Disabled = (EndpointRef, DisableReason);

/// The consequences of recorded results.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) disabled: Vec<Disabled>,
    /// Endpoints that must not receive deliveries now.
    pub(super) held: Vec<EndpointRef>,
    /// The lost events of each endpoint.
    pub(super) lost: BTreeMap<EndpointRef, Lost>,
}

/// Records the results of deliveries that this node still leases.
pub(super) async fn record(db: &mut Db, ended: &[Arc<FinishedDelivery>]) -> QueryResult<Recorded> {
    let mut endpoints = lock(db, ended).await?;
    let ours = ours(db, ended).await?;
    let (mut deliveries, mut attempts) = (Deliveries::default(), Attempts::default());
    let mut disabled = BTreeMap::new();
    let mut gone: BTreeMap<EndpointRef, Lost> = BTreeMap::new();
    for one in ended {
        let FinishedDelivery { job, ending, .. } = &**one;
        let Some(endpoint) = endpoints.get_mut(&job.endpoint.id) else { continue };
        if !ours.contains(&job.id) {
            tracing::debug!(delivery.id = job.id.as_str(), "lost the lease of a delivery");
            continue;
        }
        match ending {
            Ending::Attempted(outcome) => {
                let (next, endpoint_next) = endpoint.attempted(job, outcome);
                if let EndpointNext::Disable(reason) = endpoint_next {
                    disabled.insert(job.endpoint.id.clone(), reason);
                }
                deliveries.attempted(job, outcome, next, endpoint.now);
                attempts.push(job, outcome);
            }
            Ending::Unspent => {
                endpoint.released(job);
                deliveries.unspent(job, "open", Some(endpoint.now + UNSPENT));
            }
            Ending::Released => {
                endpoint.released(job);
                deliveries.unspent(job, "open", None);
            }
            Ending::Expired => {
                endpoint.released(job);
                deliveries.unspent(job, "cancelled", None);
                let one = Lost::one(job.sequence);
                let all = gone.get(&job.endpoint.id).map_or(one, |all| all.and(one));
                gone.insert(job.endpoint.id.clone(), all);
            }
        }
    }
    deliveries.write(db).await?;
    attempts.write(db).await?;
    write(db, &endpoints).await?;
    for (endpoint_id, events) in &gone {
        lost::note(db, endpoint_id, *events).await?;
    }
    let held = endpoints.iter().filter(|(id, one)| one.is_held() || disabled.contains_key(*id));
    let held = held.map(|(id, _)| id.clone()).collect();
    Ok(Recorded { disabled: disabled.into_iter().collect(), held, lost: gone })
}

async fn lock(
    db: &mut Db,
    ended: &[Arc<FinishedDelivery>],
) -> QueryResult<BTreeMap<EndpointRef, Endpoint>> {
    let ids: HashSet<&str> = ended.iter().map(|one| &*one.job.endpoint.id).collect();
    let rows: Vec<BreakerRow> =
        prepared(CURSORS).bind::<Array<Text>, _>(Vec::from_iter(ids)).load(db).await?;
    let endpoints = rows.into_iter().map(|row| {
        let breaker = breaker::read(&row.breaker, row.breaker_count, row.breaker_until);
        let endpoint = Endpoint {
            breaker,
            waits_until: row.waits_until,
            failing_since: row.failing_since,
            dead_since: row.dead_since,
            succeeded: false,
            now: row.now,
        };
        (row.endpoint_id, endpoint)
    });
    Ok(endpoints.collect())
}

async fn ours(db: &mut Db, ended: &[Arc<FinishedDelivery>]) -> QueryResult<HashSet<DeliveryRef>> {
    let jobs = || ended.iter().map(|one| &one.job);
    let rows: Vec<Id> = prepared(OURS)
        .bind::<Array<Text>, _>(jobs().map(|job| &*job.id).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(jobs().map(|job| &*job.lease).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(jobs().map(|job| job.attempts).collect::<Vec<_>>())
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

async fn write(db: &mut Db, endpoints: &BTreeMap<EndpointRef, Endpoint>) -> QueryResult<()> {
    let all = || endpoints.values();
    let breakers: Vec<breaker::Columns> = all().map(|e| breaker::write(e.breaker)).collect();
    prepared(ENDPOINTS)
        .bind::<Array<Text>, _>(endpoints.keys().map(EndpointRef::as_str).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(breakers.iter().map(|b| b.0).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(breakers.iter().map(|b| b.1).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(breakers.iter().map(|b| b.2).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(all().map(|e| e.waits_until).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(all().map(|e| e.failing_since).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(
            all().map(|e| e.succeeded.then_some(e.now)).collect::<Vec<_>>(),
        )
        .bind::<Array<Nullable<Timestamptz>>, _>(all().map(|e| e.dead_since).collect::<Vec<_>>())
        .execute(db)
        .await
        .map(drop)
}

/// The columns of an endpoint's cursor that results change.
struct Endpoint {
    breaker: Breaker,
    waits_until: Option<DateTime<Utc>>,
    failing_since: Option<DateTime<Utc>>,
    /// When a delivery used up its attempts for the first time since the last success.
    dead_since: Option<DateTime<Utc>>,
    succeeded: bool,
    now: DateTime<Utc>,
}

impl Endpoint {
    /// Handles a delivery that was not attempted. If the delivery was a probe, another one may
    /// follow at once.
    fn released(&mut self, job: &Job) {
        if job.is_probe {
            self.breaker = breaker::released(self.breaker, self.now);
        }
    }

    fn is_held(&self) -> bool {
        !matches!(self.breaker, Breaker::Closed { .. })
            || self.waits_until.is_some_and(|until| self.now < until)
    }

    fn attempted(&mut self, job: &Job, outcome: &Outcome) -> (DeliveryNext, EndpointNext) {
        // Counts the attempts of the current schedule, including this one.
        let attempt = u32::try_from(job.attempts - job.attempts_before + 1).unwrap_or(1);
        let schedule = &job.endpoint.schedule;
        let (answer, random) = (&outcome.answer, fastrand::f64());
        let failing = Failing { since: self.failing_since, in_a_row: self.breaker.failures() };
        let next = after_attempt(answer, schedule, attempt, random, failing, self.now);
        self.breaker = self.breaker.record(answer.succeeded(), self.now);
        if answer.succeeded() {
            (self.failing_since, self.dead_since) = (None, None);
            self.succeeded = true;
        } else {
            self.failing_since.get_or_insert(self.now);
        }
        if next.0 == DeliveryNext::Dead {
            self.dead_since.get_or_insert(self.now);
        }
        if let EndpointNext::Wait(asked) = next.1 {
            let until = self.now + TimeDelta::from_std(asked).unwrap_or_default();
            self.waits_until = self.waits_until.max(Some(until));
        }
        next
    }
}

/// Changes of `webhook_deliveries`, column by column.
#[derive(Default)]
struct Deliveries<'a> {
    id: Vec<&'a str>,
    state: Vec<&'static str>,
    spent: Vec<i32>,
    lane: Vec<i32>,
    due_at: Vec<Option<DateTime<Utc>>>,
    status: Vec<Option<i32>>,
    class: Vec<Option<&'static str>>,
}

impl<'a> Deliveries<'a> {
    fn attempted(
        &mut self,
        job: &'a Job,
        outcome: &Outcome,
        next: DeliveryNext,
        now: DateTime<Utc>,
    ) {
        let (state, lane, due_at) = match next {
            DeliveryNext::Delivered => ("delivered", 0, None),
            DeliveryNext::Dead => ("dead", 0, None),
            DeliveryNext::Retry(delay) => {
                ("open", RETRY, Some(now + TimeDelta::from_std(delay).unwrap_or_default()))
            }
        };
        self.id.push(&job.id);
        self.state.push(state);
        self.spent.push(1);
        self.lane.push(lane);
        self.due_at.push(due_at);
        self.status.push(outcome.answer.status.map(i32::from));
        self.class.push(outcome.class.map(ErrorClass::as_str));
    }

    fn unspent(&mut self, job: &'a Job, state: &'static str, due_at: Option<DateTime<Utc>>) {
        self.id.push(&job.id);
        self.state.push(state);
        self.spent.push(0);
        self.lane.push(0);
        self.due_at.push(due_at);
        self.status.push(None);
        self.class.push(None);
    }

    async fn write(self, db: &mut Db) -> QueryResult<()> {
        prepared(DELIVERIES)
            .bind::<Array<Text>, _>(self.id)
            .bind::<Array<Text>, _>(self.state)
            .bind::<Array<Integer>, _>(self.spent)
            .bind::<Array<Integer>, _>(self.lane)
            .bind::<Array<Nullable<Timestamptz>>, _>(self.due_at)
            .bind::<Array<Nullable<Integer>>, _>(self.status)
            .bind::<Array<Nullable<Text>>, _>(self.class)
            .execute(db)
            .await
            .map(drop)
    }
}

/// New rows of `webhook_attempts`, column by column.
#[derive(Default)]
struct Attempts<'a> {
    id: Vec<&'a str>,
    tenant: Vec<&'a str>,
    attempt: Vec<i32>,
    at: Vec<DateTime<Utc>>,
    status: Vec<Option<i32>>,
    class: Vec<Option<&'static str>>,
    latency: Vec<Option<i32>>,
    body: Vec<Option<&'a str>>,
}

impl<'a> Attempts<'a> {
    fn push(&mut self, job: &'a Job, outcome: &'a Outcome) {
        self.id.push(&job.id);
        self.tenant.push(&job.endpoint.tenant_id);
        self.attempt.push(job.attempts + 1);
        self.at.push(outcome.at);
        self.status.push(outcome.answer.status.map(i32::from));
        self.class.push(outcome.class.map(ErrorClass::as_str));
        let millis = outcome.latency.map(|latency| latency.as_millis());
        self.latency.push(millis.map(|millis| i32::try_from(millis).unwrap_or(i32::MAX)));
        self.body.push(outcome.body_start.as_deref());
    }

    async fn write(self, db: &mut Db) -> QueryResult<()> {
        prepared(ATTEMPTS)
            .bind::<Array<Text>, _>(self.id)
            .bind::<Array<Text>, _>(self.tenant)
            .bind::<Array<Integer>, _>(self.attempt)
            .bind::<Array<Timestamptz>, _>(self.at)
            .bind::<Array<Nullable<Integer>>, _>(self.status)
            .bind::<Array<Nullable<Text>>, _>(self.class)
            .bind::<Array<Nullable<Integer>>, _>(self.latency)
            .bind::<Array<Nullable<Text>>, _>(self.body)
            .execute(db)
            .await
            .map(drop)
    }
}

/// Disables endpoints that are still active.
///
/// Call it in a separate transaction. Deleting an endpoint locks the endpoint before its
/// deliveries, and the opposite order could deadlock.
pub(super) async fn disable(db: &mut Db, disabled: Vec<Disabled>) -> QueryResult<()> {
    for (id, reason) in disabled {
        let word = match reason {
            DisableReason::Gone => "gone",
            DisableReason::OnlyFailures => "only_failures",
        };
        let update = prepared(
            "UPDATE webhook_endpoints SET state = 'disabled', state_reason = $2, updated_at = now() \
             WHERE id = $1 AND state = 'active'",
        );
        let changed = update.bind::<Text, _>(id.as_str()).bind::<Text, _>(word).execute(db).await?;
        if changed > 0 {
            tracing::warn!(endpoint.id = id.as_str(), reason = word, "disabled a webhook endpoint");
        }
    }
    Ok(())
}

#[derive(QueryableByName)]
struct BreakerRow {
    #[diesel(sql_type = Text, deserialize_as = String)]
    endpoint_id: EndpointRef,
    #[diesel(sql_type = Text)]
    breaker: String,
    #[diesel(sql_type = Integer)]
    breaker_count: i32,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    breaker_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    waits_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    failing_since: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    dead_since: Option<DateTime<Utc>>,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text, deserialize_as = String)]
    id: DeliveryRef,
}
