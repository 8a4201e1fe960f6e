//! Claims due deliveries for this node: no other node attempts them for a minute.
//!
//! `candidates.rs` finds the endpoints with due deliveries, and `turns.rs` determines how many to
//! claim. This module then applies the breaker: if it is closed, all deliveries may be claimed;
//! otherwise only a probe. The rate limit is applied when deliveries are sent (`check.rs`).

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use authority_ids::{DeliveryRef, EndpointRef, EventRef};
use authority_keys::Keys;
use authority_store::{self as store, Db, RunQueryDsl, Scope, new_id, prepared};
use authority_webhook::{
    destination::UrlRules,
    retry::{Admission, Breaker},
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Integer, Nullable, SmallInt, Text, Timestamptz},
};
use tokio::time::Instant;

use super::{
    breaker,
    candidates::candidates,
    endpoint::{COLUMNS, Endpoint, EndpointRow},
    job::Job,
    places::{DeliveryPlace, Places},
    queue::Rooms,
    shared::Shared,
    turns::{LANES, Share, Turns},
};
use crate::log;

/// The duration of a lease. It equals the interval in `CLAIM`.
const LEASE: Duration = Duration::from_secs(60);

const LIMITS: &str = "c.breaker, c.breaker_count, c.breaker_until, e.rate_limit_per_second, \
     clock_timestamp() AS now \
     FROM webhook_cursors c \
     JOIN webhook_endpoints e ON e.id = c.endpoint_id AND e.state = 'active' \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     WHERE c.endpoint_id = ANY ($1) AND (c.waits_until IS NULL OR c.waits_until <= clock_timestamp())";
/// Selects closed breakers without locking them. [`LOCKED`] locks the others, because admitting a
/// probe changes them.
const CLOSED: &str = " AND c.breaker = 'closed'";
const LOCKED: &str = " AND c.breaker <> 'closed' ORDER BY c.endpoint_id FOR UPDATE OF c";

/// Compares ids with an array. The planner then always uses the index of ids, however many due
/// deliveries it expects.
const CLAIM: &str = "UPDATE webhook_deliveries d \
     SET lease = $4::uuid, leased_until = clock_timestamp() + interval '60 s' \
     WHERE d.id = ANY (ARRAY ( \
         SELECT found.id FROM unnest($1, $2, $3) AS share (endpoint_id, lane, count) \
         CROSS JOIN LATERAL ( \
             SELECT o.id FROM webhook_deliveries o \
             WHERE o.endpoint_id = share.endpoint_id AND o.lane = share.lane AND o.state = 'open' \
               AND o.due_at <= now() \
               AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp()) \
             ORDER BY o.due_at LIMIT share.count FOR UPDATE SKIP LOCKED) AS found)) \
     RETURNING d.id, d.endpoint_id, d.event_id, d.sequence, d.lane, d.attempts, d.attempts_before, d.replay_id";

const BREAKERS: &str = "UPDATE webhook_cursors c \
     SET breaker = n.breaker, breaker_count = n.count, breaker_until = n.until \
     FROM unnest($1, $2, $3, $4) AS n (endpoint_id, breaker, count, until) \
     WHERE c.endpoint_id = n.endpoint_id";

/// Creates the rows of `webhook_paces` that `check.rs` locks and updates.
const PACES: &str = "INSERT INTO webhook_paces (endpoint_id, tenant_id) SELECT * FROM unnest($1, $2) \
     ON CONFLICT DO NOTHING";

/// Deliveries that were claimed together.
#[derive(Default)]
pub(super) struct Claims {
    pub(super) jobs: Vec<Job>,
    /// Endpoints with more due deliveries than were claimed.
    pub(super) more: HashSet<EndpointRef>,
}

/// Claims due deliveries. `rooms` limits the number for each endpoint, and `claimed` counts the
/// deliveries that this node has already claimed.
pub(super) async fn round(
    shared: Arc<Shared>,
    mut turns: Turns,
    rooms: Rooms,
    claimed: Places,
) -> (Turns, Result<Claims, store::Error>) {
    if claimed.are_full() || !shared.is_on_time() {
        return (turns, Ok(Claims::default()));
    }
    let found = shared.store.read_tx(&Scope::service(), {
        let shared = Arc::clone(&shared);
        async move |db| {
            let has_signer = shared.keys.webhook_signer().is_some();
            Ok::<_, store::Error>(candidates(db, &shared.rules, has_signer).await?)
        }
    });
    let mut candidates = match found.await {
        Ok(candidates) => candidates,
        Err(error) => return (turns, Err(error)),
    };
    let mut more = HashSet::new();
    for candidate in &mut candidates {
        let room = rooms.of(&candidate.place.endpoint_id);
        if candidate.due.iter().zip(room).any(|(due, room)| *due > room) {
            more.insert(candidate.place.endpoint_id.clone());
        }
        candidate.due = std::array::from_fn(|lane: usize| candidate.due[lane].min(room[lane]));
    }
    turns.forget(candidates.iter());
    let shares = turns.divide(&mut candidates, claimed);
    let left = candidates.into_iter().filter(|candidate| candidate.due != [0; LANES]);
    more.extend(left.map(|candidate| candidate.place.endpoint_id));
    if shares.is_empty() {
        return (turns, Ok(Claims { jobs: Vec::new(), more }));
    }
    // Set before the query: this time must not be later than the lease's end in the database.
    let leased_until = Instant::now() + LEASE;
    let claimed = shared.store.write_tx(&Scope::service(), {
        let shared = Arc::clone(&shared);
        async move |db| {
            let (keys, rules) = (&shared.keys, &shared.rules);
            Ok::<_, store::Error>(claim(db, keys, rules, &shares, leased_until).await?)
        }
    });
    (turns, claimed.await.map(|jobs| Claims { jobs, more }))
}

/// Claims the deliveries of these shares, as far as the breakers permit.
async fn claim(
    db: &mut Db,
    keys: &Keys,
    rules: &UrlRules,
    shares: &[Share],
    leased_until: Instant,
) -> QueryResult<Vec<Job>> {
    let mut endpoints = endpoints(db, shares).await?;
    let permitted: Vec<(&Share, i64)> = shares
        .iter()
        .filter_map(|share| {
            Some((share, endpoints.get_mut(&share.endpoint_id)?.admit(share.count)))
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    let lease = new_id().to_string();
    let lane = |share: &Share| i16::try_from(share.lane).unwrap_or_default();
    let claimed: Vec<Claimed> = prepared(CLAIM)
        .bind::<Array<Text>, _>(permitted.iter().map(|(s, _)| &*s.endpoint_id).collect::<Vec<_>>())
        .bind::<Array<SmallInt>, _>(permitted.iter().map(|(s, _)| lane(s)).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(permitted.iter().map(|(_, count)| *count).collect::<Vec<_>>())
        .bind::<Text, _>(&lease)
        .load(db)
        .await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let ids: HashSet<&EndpointRef> = claimed.iter().map(|row| &row.endpoint_id).collect();
    endpoints.retain(|id, _| ids.contains(id));
    keep(db, &endpoints).await?;
    let bodies = bodies(db, &claimed, &endpoints).await?;
    let opened = open(&endpoints, keys, rules);
    let job = |row: Claimed| {
        let (endpoint, place) = opened.get(&row.endpoint_id)?;
        let limits = endpoints.get(&row.endpoint_id)?;
        Some(Job {
            id: row.id,
            endpoint: Arc::clone(endpoint),
            place: Arc::clone(place),
            body: bodies.get(&row.event_id).cloned(),
            event_id: row.event_id,
            sequence: row.sequence,
            replay_id: row.replay_id.map(Into::into),
            lane: usize::try_from(row.lane).unwrap_or_default().min(LANES - 1),
            attempts: row.attempts,
            attempts_before: row.attempts_before,
            lease: lease.clone(),
            leased_until,
            is_probe: limits.is_probe,
            per_second: limits.row.rate_limit_per_second,
            failures: limits.failures(),
        })
    };
    Ok(claimed.into_iter().filter_map(job).collect())
}

/// Returns the endpoints that may still receive deliveries.
///
/// Locks the endpoints with a breaker that is not closed.
async fn endpoints(db: &mut Db, shares: &[Share]) -> QueryResult<HashMap<EndpointRef, Limits>> {
    let ids: BTreeSet<&str> = shares.iter().map(|share| &*share.endpoint_id).collect();
    let ids = Vec::from_iter(ids);
    let mut found = HashMap::new();
    for which in [CLOSED, LOCKED] {
        let query = ["SELECT ", COLUMNS, ", ", LIMITS, which].concat();
        let rows: Vec<(EndpointRow, LimitRow)> =
            prepared(query).bind::<Array<Text>, _>(&ids).load(db).await?;
        found.extend(rows.into_iter().map(|(endpoint, row)| {
            let breaker = breaker::read(&row.breaker, row.breaker_count, row.breaker_until);
            (endpoint.endpoint_id.clone(), Limits { endpoint, row, breaker, is_probe: false })
        }));
    }
    Ok(found)
}

/// Writes the breakers that admitted a probe, and creates missing rows of `webhook_paces`.
async fn keep(db: &mut Db, endpoints: &HashMap<EndpointRef, Limits>) -> QueryResult<()> {
    let all = || endpoints.values().map(|limits| &limits.endpoint);
    prepared(PACES)
        .bind::<Array<Text>, _>(all().map(|row| &*row.endpoint_id).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(all().map(|row| &*row.tenant_id).collect::<Vec<_>>())
        .execute(db)
        .await?;
    let probed: Vec<(&EndpointRef, breaker::Columns)> = endpoints
        .iter()
        .filter(|(_, limits)| limits.is_probe)
        .map(|(id, limits)| (id, breaker::write(limits.breaker)))
        .collect();
    if probed.is_empty() {
        return Ok(());
    }
    prepared(BREAKERS)
        .bind::<Array<Text>, _>(probed.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(probed.iter().map(|(_, b)| b.0).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(probed.iter().map(|(_, b)| b.1).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(
            probed.iter().map(|(_, b)| b.2).collect::<Vec<_>>(),
        )
        .execute(db)
        .await
        .map(drop)
}

/// Reads the events' bytes, once for all endpoints.
async fn bodies(
    db: &mut Db,
    claimed: &[Claimed],
    endpoints: &HashMap<EndpointRef, Limits>,
) -> QueryResult<HashMap<EventRef, Bytes>> {
    let wanted = claimed.iter().filter_map(|row| {
        Some((&*endpoints.get(&row.endpoint_id)?.endpoint.tenant_id, &row.event_id))
    });
    let events = log::by_id(db, &wanted.collect()).await?;
    Ok(events.into_iter().map(|event| (event.id, event.body)).collect())
}

/// Opens the sealed columns of the endpoints.
fn open<'a>(
    endpoints: &'a HashMap<EndpointRef, Limits>,
    keys: &Keys,
    rules: &UrlRules,
) -> HashMap<&'a EndpointRef, (Arc<Endpoint>, Arc<DeliveryPlace>)> {
    let open = |(id, limits): (&'a EndpointRef, &Limits)| {
        let opened = limits.endpoint.open(keys, rules, limits.row.now);
        // The endpoint's deliveries stay leased and are claimed again after the lease has expired.
        let opened = opened.inspect_err(|error| {
            tracing::error!(%error, endpoint.id = id.as_str(), "failed to open a webhook endpoint");
        });
        let endpoint = opened.ok()?;
        let host = endpoint.url.as_ref().map(|url| url.host().to_owned()).unwrap_or_default();
        let (endpoint_id, tenant_id) = (endpoint.id.clone(), endpoint.tenant_id.clone());
        Some((id, (Arc::new(endpoint), Arc::new(DeliveryPlace { endpoint_id, tenant_id, host }))))
    };
    endpoints.iter().filter_map(open).collect()
}

/// An endpoint's row with its current breaker and rate limit.
struct Limits {
    endpoint: EndpointRow,
    row: LimitRow,
    breaker: Breaker,
    is_probe: bool,
}

impl Limits {
    /// Returns how many deliveries may be claimed.
    fn admit(&mut self, wanted: usize) -> i64 {
        match self.breaker.admit(self.row.now) {
            (_, Admission::WaitUntil(_)) => 0,
            (next, Admission::Probe) => {
                (self.breaker, self.is_probe) = (next, true);
                1
            }
            (_, Admission::Admitted) => i64::try_from(wanted).unwrap_or_default(),
        }
    }

    fn failures(&self) -> u32 {
        match self.breaker {
            Breaker::Closed { failures } => failures,
            Breaker::Open { .. } | Breaker::Probing { .. } => 0,
        }
    }
}

#[derive(QueryableByName)]
struct LimitRow {
    #[diesel(sql_type = Text)]
    breaker: String,
    #[diesel(sql_type = Integer)]
    breaker_count: i32,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    breaker_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Integer)]
    rate_limit_per_second: i32,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct Claimed {
    #[diesel(sql_type = Text, deserialize_as = String)]
    id: DeliveryRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    endpoint_id: EndpointRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    event_id: EventRef,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    #[diesel(sql_type = SmallInt)]
    lane: i16,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = Integer)]
    attempts_before: i32,
    #[diesel(sql_type = Nullable<Text>)]
    replay_id: Option<String>,
}
