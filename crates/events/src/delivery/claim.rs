//! Takes due deliveries for this node: for a minute nobody else attempts them.
//!
//! Which endpoints have some, and how many places they get, is decided before (`turns.rs`); here the
//! endpoint's own limits are applied, under the lock of its cursor: its breaker, its `Retry-After`, its rate.

use std::{collections::HashMap, sync::Arc, time::Duration};

use authority_core::{
    keys::Keys,
    store::{Db, RunQueryDsl, new_id},
};
use authority_webhook::{
    destination::{EndpointUrl, UrlRules},
    retry::{Admission, Breaker},
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Bytea, Integer, Nullable, SmallInt, Text, Timestamptz},
};

use super::{
    breaker,
    endpoint::{COLUMNS, Endpoint, EndpointRow},
    pace,
    turns::{Candidate, LANES, Place, Share},
};

/// The endpoints with open deliveries, by a loose index scan, and how many of them are due in each lane.
/// Those whose breaker or receiver wants them to wait are left out. `now()` can be looked up in the index of due
/// times, which `clock_timestamp()` cannot.
const CANDIDATES: &str = "WITH RECURSIVE open (endpoint_id) AS ( \
         (SELECT endpoint_id FROM webhook_deliveries WHERE state = 'open' ORDER BY endpoint_id LIMIT 1) \
         UNION ALL \
         SELECT (SELECT endpoint_id FROM webhook_deliveries \
                 WHERE state = 'open' AND endpoint_id > open.endpoint_id \
                 ORDER BY endpoint_id LIMIT 1) \
         FROM open WHERE endpoint_id IS NOT NULL) \
     SELECT e.id AS endpoint_id, e.tenant_id, e.url, lanes.lane, due.count, c.paced_until, \
            e.rate_limit_per_second, clock_timestamp() AS now \
     FROM open \
     JOIN webhook_endpoints e ON e.id = open.endpoint_id AND e.state = 'active' \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     JOIN webhook_cursors c ON c.endpoint_id = e.id \
     CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint)) AS lanes (lane) \
     CROSS JOIN LATERAL (SELECT count(*) FROM ( \
         SELECT FROM webhook_deliveries d \
         WHERE d.endpoint_id = e.id AND d.lane = lanes.lane AND d.state = 'open' \
           AND d.due_at <= now() \
           AND (d.leased_until IS NULL OR d.leased_until <= clock_timestamp()) \
         LIMIT 4) AS found) AS due \
     WHERE due.count > 0 \
       AND (c.waits_until IS NULL OR c.waits_until <= clock_timestamp()) \
       AND (c.breaker = 'closed' OR c.breaker_until <= clock_timestamp()) \
       AND ($1 OR e.signing_suites <@ '{standard-webhooks/v1}')";

const LOCKED: &str = "c.breaker, c.breaker_count, c.breaker_until, c.waits_until, c.paced_until, \
     e.rate_limit_per_second, clock_timestamp() AS now \
     FROM webhook_cursors c \
     JOIN webhook_endpoints e ON e.id = c.endpoint_id AND e.state = 'active' \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     WHERE c.endpoint_id = ANY ($1) ORDER BY c.endpoint_id FOR UPDATE OF c";

const CLAIM: &str = "WITH due AS ( \
         SELECT found.id FROM unnest($1, $2, $3) AS share (endpoint_id, lane, count) \
         CROSS JOIN LATERAL ( \
             SELECT d.id FROM webhook_deliveries d \
             WHERE d.endpoint_id = share.endpoint_id AND d.lane = share.lane AND d.state = 'open' \
               AND d.due_at <= now() \
               AND (d.leased_until IS NULL OR d.leased_until <= clock_timestamp()) \
             ORDER BY d.due_at LIMIT share.count FOR UPDATE SKIP LOCKED) AS found) \
     UPDATE webhook_deliveries d \
     SET lease = $4::uuid, leased_until = clock_timestamp() + interval '60 s' \
     FROM due WHERE d.id = due.id \
     RETURNING d.id, d.endpoint_id, d.event_id, d.sequence, d.lane, d.attempts, d.attempts_before, d.replay_id";

const CURSORS: &str = "UPDATE webhook_cursors c \
     SET breaker = n.breaker, breaker_count = n.count, breaker_until = n.until, paced_until = n.paced \
     FROM unnest($1, $2, $3, $4, $5) AS n (endpoint_id, breaker, count, until, paced) \
     WHERE c.endpoint_id = n.endpoint_id";

/// A claimed delivery: what one attempt needs.
pub(super) struct Job {
    pub(super) id: String,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) event_id: String,
    pub(super) sequence: i64,
    /// The event's bytes; `None` if retention has taken them.
    pub(super) body: Option<Bytes>,
    pub(super) replay_id: Option<String>,
    pub(super) attempts: i32,
    pub(super) attempts_before: i32,
    pub(super) lease: String,
    pub(super) place: Place,
}

/// The endpoints with due deliveries, and how long until the rate limit of another one permits its next.
/// Without a signer only those whose signatures need none.
pub(super) async fn candidates(
    db: &mut Db,
    rules: &UrlRules,
    has_signer: bool,
) -> QueryResult<(Vec<Candidate>, Option<Duration>)> {
    let due: Vec<Due> = diesel::sql_query(CANDIDATES).bind::<Bool, _>(has_signer).load(db).await?;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut next: Option<Duration> = None;
    for row in due {
        let pause = pace::pause(row.paced_until, row.rate_limit_per_second, row.now);
        if !pause.is_zero() {
            next = Some(next.map_or(pause, |next| next.min(pause)));
            continue;
        }
        let lane = usize::try_from(row.lane).unwrap_or_default().min(LANES - 1);
        let count = usize::try_from(row.count).unwrap_or_default();
        match candidates.last_mut() {
            Some(last) if last.endpoint_id == row.endpoint_id => last.due[lane] += count,
            _ => {
                let mut due = [0; LANES];
                due[lane] = count;
                let host = EndpointUrl::parse(&row.url, rules);
                let host = host.map(|url| url.host().to_owned()).unwrap_or_default();
                let Due { endpoint_id, tenant_id, .. } = row;
                candidates.push(Candidate { endpoint_id, tenant_id, host, due });
            }
        }
    }
    Ok((candidates, next))
}

/// Claims what the endpoints' own limits permit of these shares.
pub(super) async fn claim(
    db: &mut Db,
    keys: &Keys,
    rules: &UrlRules,
    shares: &[Share],
) -> QueryResult<Vec<Job>> {
    let mut limits = lock(db, shares).await?;
    let permitted: Vec<(&Share, i64)> = shares
        .iter()
        .filter_map(|share| Some((share, limits.get_mut(&share.endpoint_id)?.admit(share.count))))
        .filter(|(_, count)| *count > 0)
        .collect();
    let lease = new_id().to_string();
    let claimed: Vec<Claimed> = diesel::sql_query(CLAIM)
        .bind::<Array<Text>, _>(permitted.iter().map(|(s, _)| &*s.endpoint_id).collect::<Vec<_>>())
        .bind::<Array<SmallInt>, _>(
            permitted
                .iter()
                .map(|(s, _)| i16::try_from(s.lane).unwrap_or_default())
                .collect::<Vec<_>>(),
        )
        .bind::<Array<BigInt>, _>(permitted.iter().map(|(_, count)| *count).collect::<Vec<_>>())
        .bind::<Text, _>(&lease)
        .load(db)
        .await?;
    for row in &claimed {
        if let Some(limit) = limits.get_mut(&row.endpoint_id) {
            limit.claimed += 1;
        }
    }
    keep(db, &limits).await?;
    let bodies = bodies(db, &claimed).await?;
    Ok(jobs(claimed, &limits, &bodies, &lease, keys, rules))
}

/// Locks the cursors of endpoints that may still be sent to.
async fn lock(db: &mut Db, shares: &[Share]) -> QueryResult<HashMap<String, Limits>> {
    let mut ids: Vec<&str> = shares.iter().map(|share| &*share.endpoint_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let query = ["SELECT ", COLUMNS, ", ", LOCKED].concat();
    let rows: Vec<(EndpointRow, LimitRow)> =
        diesel::sql_query(query).bind::<Array<Text>, _>(ids).load(db).await?;
    let limits = rows.into_iter().map(|(endpoint, row)| {
        let breaker = breaker::read(&row.breaker, row.breaker_count, row.breaker_until);
        let id = endpoint.endpoint_id.clone();
        (id, Limits { endpoint, row, breaker, admitted: 0, claimed: 0 })
    });
    Ok(limits.collect())
}

/// Writes the limits of the endpoints of which something was claimed.
async fn keep(db: &mut Db, limits: &HashMap<String, Limits>) -> QueryResult<()> {
    let used = || limits.iter().filter(|(_, limit)| limit.claimed > 0);
    let breakers: Vec<breaker::Columns> =
        used().map(|(_, limit)| breaker::write(limit.breaker)).collect();
    let paced = used().map(|(_, limit)| limit.paced(limit.claimed).1);
    diesel::sql_query(CURSORS)
        .bind::<Array<Text>, _>(used().map(|(id, _)| &**id).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(breakers.iter().map(|b| b.0).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(breakers.iter().map(|b| b.1).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(breakers.iter().map(|b| b.2).collect::<Vec<_>>())
        .bind::<Array<Timestamptz>, _>(paced.collect::<Vec<_>>())
        .execute(db)
        .await
        .map(drop)
}

async fn bodies(db: &mut Db, claimed: &[Claimed]) -> QueryResult<HashMap<String, Bytes>> {
    let ids: Vec<&str> = claimed.iter().map(|row| &*row.event_id).collect();
    let rows: Vec<EventRow> = diesel::sql_query("SELECT id, body FROM events WHERE id = ANY ($1)")
        .bind::<Array<Text>, _>(ids)
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.body.into())).collect())
}

fn jobs(
    claimed: Vec<Claimed>,
    limits: &HashMap<String, Limits>,
    bodies: &HashMap<String, Bytes>,
    lease: &str,
    keys: &Keys,
    rules: &UrlRules,
) -> Vec<Job> {
    let opened: HashMap<&String, Arc<Endpoint>> = limits
        .iter()
        .filter(|(_, limit)| limit.claimed > 0)
        .filter_map(|(id, limit)| match limit.endpoint.open(keys, rules, limit.row.now) {
            Ok(endpoint) => Some((id, Arc::new(endpoint))),
            // Its deliveries stay leased, and are tried again when that has ended.
            Err(error) => {
                tracing::error!(endpoint_id = id, %error, "an endpoint cannot be sent to");
                None
            }
        })
        .collect();
    let job = |row: Claimed| {
        let endpoint = Arc::clone(opened.get(&row.endpoint_id)?);
        let host = endpoint.url.as_ref().map(|url| url.host().to_owned()).unwrap_or_default();
        let (endpoint_id, tenant_id) = (endpoint.id.clone(), endpoint.tenant_id.clone());
        Some(Job {
            id: row.id,
            endpoint,
            body: bodies.get(&row.event_id).cloned(),
            event_id: row.event_id,
            sequence: row.sequence,
            replay_id: row.replay_id,
            attempts: row.attempts,
            attempts_before: row.attempts_before,
            lease: lease.to_owned(),
            place: Place { endpoint_id, tenant_id, host },
        })
    };
    claimed.into_iter().filter_map(job).collect()
}

/// What an endpoint permits now.
struct Limits {
    endpoint: EndpointRow,
    row: LimitRow,
    breaker: Breaker,
    admitted: usize,
    claimed: usize,
}

impl Limits {
    /// How many more attempts may start.
    fn admit(&mut self, wanted: usize) -> i64 {
        if self.row.waits_until.is_some_and(|until| self.row.now < until) {
            return 0;
        }
        let permitted = match self.breaker.admit(self.row.now) {
            (_, Admission::WaitUntil(_)) => 0,
            (next, Admission::Probe) => {
                self.breaker = next;
                1
            }
            (_, Admission::Admitted) => {
                self.paced(self.admitted + wanted).0.saturating_sub(self.admitted).min(wanted)
            }
        };
        self.admitted += permitted;
        i64::try_from(permitted).unwrap_or_default()
    }

    fn paced(&self, count: usize) -> (usize, DateTime<Utc>) {
        let row = &self.row;
        pace::permitted(row.paced_until, row.rate_limit_per_second, count, row.now)
    }
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = Text)]
    endpoint_id: String,
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    url: String,
    #[diesel(sql_type = SmallInt)]
    lane: i16,
    #[diesel(sql_type = BigInt)]
    count: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    paced_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Integer)]
    rate_limit_per_second: i32,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct LimitRow {
    #[diesel(sql_type = Text)]
    breaker: String,
    #[diesel(sql_type = Integer)]
    breaker_count: i32,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    breaker_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    waits_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    paced_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Integer)]
    rate_limit_per_second: i32,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct Claimed {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    endpoint_id: String,
    #[diesel(sql_type = Text)]
    event_id: String,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = Integer)]
    attempts_before: i32,
    #[diesel(sql_type = Nullable<Text>)]
    replay_id: Option<String>,
}

#[derive(QueryableByName)]
struct EventRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Bytea)]
    body: Vec<u8>,
}
