//! Asks the database right before attempts are sent, once for all that wait to be.
//!
//! Whoever comes while a question is on its way waits for the next one, so each attempt starts only on an answer
//! that was asked for after it was chosen. Here the rate limit applies too: over all nodes, at the moment of
//! sending.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use authority_core::store::{self, Db, RunQueryDsl, Scope, Store, prepared};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, Bool, Integer, Text, Timestamptz},
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{job::Job, pace::Pace};

/// The deliveries that are leased by whoever claimed them for longer than an attempt takes, and whether they may
/// be sent: to an active endpoint of an active tenant, held neither by its breaker nor by its receiver. Of a breaker
/// that is not closed only the probe is sent. The rows of rate limits are locked, in order. What is written is lost
/// to no harm if the database crashes, so that its disk is not waited for. `OFFSET 0` keeps the planner from looking the
/// deliveries up by more than their ids: the plan is kept, and while the table is empty the index of what is open looks
/// as good.
const MAY_SEND: &str = "SELECT asked.id, e.id AS endpoint_id, e.rate_limit_per_second, p.paced_until, \
            clock_timestamp() AS now, e.xmin::text = asked.version AS is_current, \
            e.state = 'active' AND t.state = 'active' AND (c.breaker = 'closed' OR asked.is_probe) \
                AND (c.waits_until IS NULL OR c.waits_until <= clock_timestamp()) AS permitted \
     FROM (SELECT set_config('synchronous_commit', 'off', true)) AS relaxed \
     CROSS JOIN unnest($1, $2, $3, $4) AS asked (id, lease, is_probe, version) \
     CROSS JOIN LATERAL ( \
         SELECT endpoint_id, lease, leased_until, state FROM webhook_deliveries \
         WHERE id = asked.id OFFSET 0) AS d \
     JOIN webhook_endpoints e ON e.id = d.endpoint_id \
     JOIN tenants t ON t.id = e.tenant_id \
     JOIN webhook_cursors c ON c.endpoint_id = e.id \
     JOIN webhook_paces p ON p.endpoint_id = e.id \
     WHERE d.lease = asked.lease::uuid AND d.state = 'open' \
       AND d.leased_until > clock_timestamp() + interval '17 s' \
     ORDER BY p.endpoint_id FOR UPDATE OF p";

const PACES: &str = "UPDATE webhook_paces p SET paced_until = n.paced \
     FROM unnest($1, $2) AS n (endpoint_id, paced) WHERE p.endpoint_id = n.endpoint_id";

/// Why a delivery was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// By the endpoint's rate limit it may start after this time.
    Later(Duration),
    /// Nothing may be sent to its endpoint now.
    Held,
    /// Its endpoint is no longer as it was claimed for: its URL, its secrets.
    Changed,
    /// It is no longer this node's, or nobody knows.
    Unknown,
}

type Answer = Result<(), Unsent>;

/// Attempts that ask.
pub(super) struct Checks {
    store: Store,
    waiting: Mutex<Vec<(Asked, oneshot::Sender<Answer>)>>,
    /// Held by who asks for all.
    turn: tokio::sync::Mutex<()>,
}

struct Asked {
    id: String,
    lease: String,
    is_probe: bool,
    /// The endpoint's.
    version: String,
}

impl Checks {
    pub(super) fn new(store: Store) -> Self {
        Self { store, waiting: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Whether a claimed delivery may be sent now. If it may, it counts for its endpoint's rate limit.
    pub(super) async fn may_send(&self, job: &Job) -> Answer {
        let asked = Asked {
            id: job.id.clone(),
            lease: job.lease.clone(),
            is_probe: job.is_probe,
            version: job.endpoint.version.clone(),
        };
        let (answer, mut answered) = oneshot::channel();
        self.waiting.lock().push((asked, answer));
        tokio::select! {
            biased;
            answer = &mut answered => return answer.unwrap_or(Err(Unsent::Unknown)),
            _turn = self.turn.lock() => self.ask().await,
        }
        answered.await.unwrap_or(Err(Unsent::Unknown))
    }

    /// Asks for all that wait by now. Who gets no answer is not sent.
    async fn ask(&self) {
        let (asked, answers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.waiting.lock()).into_iter().unzip();
        let ids: Vec<String> = asked.iter().map(|one: &Asked| one.id.clone()).collect();
        let found = self.store.write_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(check(db, &asked).await?)
        });
        let Ok(mut found) = found.await else { return };
        for (id, answer) in ids.iter().zip(answers) {
            // It may have given up.
            let _ = answer.send(found.remove(id).unwrap_or(Err(Unsent::Unknown)));
        }
    }
}

/// The answers by delivery; there is none for those that are no longer leased.
async fn check(db: &mut Db, asked: &[Asked]) -> QueryResult<HashMap<String, Answer>> {
    let found: Vec<Found> = prepared(MAY_SEND)
        .bind::<Array<Text>, _>(asked.iter().map(|one| &*one.id).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(asked.iter().map(|one| &*one.lease).collect::<Vec<_>>())
        .bind::<Array<Bool>, _>(asked.iter().map(|one| one.is_probe).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(asked.iter().map(|one| &*one.version).collect::<Vec<_>>())
        .load(db)
        .await?;
    let mut paces: BTreeMap<String, Admitted> = BTreeMap::new();
    let mut answers = HashMap::new();
    for row in found {
        let answer = match (row.permitted, row.is_current) {
            (true, true) => {
                let admitted = paces.entry(row.endpoint_id.clone());
                admitted.or_insert_with(|| Admitted::of(&row)).admit()
            }
            (true, false) => Err(Unsent::Changed),
            (false, _) => Err(Unsent::Held),
        };
        answers.insert(row.id, answer);
    }
    paces.retain(|_, admitted| admitted.any);
    if !paces.is_empty() {
        prepared(PACES)
            .bind::<Array<Text>, _>(paces.keys().map(String::as_str).collect::<Vec<_>>())
            .bind::<Array<Timestamptz>, _>(paces.values().map(Admitted::until).collect::<Vec<_>>())
            .execute(db)
            .await?;
    }
    Ok(answers)
}

/// What an endpoint's rate limit admits in this check.
struct Admitted {
    pace: Pace,
    now: DateTime<Utc>,
    lead: TimeDelta,
    any: bool,
}

impl Admitted {
    fn of(row: &Found) -> Self {
        let lead = row.paced_until - row.now;
        Self { pace: Pace::of(row.rate_limit_per_second), now: row.now, lead, any: false }
    }

    fn admit(&mut self) -> Answer {
        let next = self.pace.admit(self.lead).ok_or(Unsent::Later(self.pace.pause(self.lead)))?;
        (self.lead, self.any) = (next, true);
        Ok(())
    }

    fn until(&self) -> DateTime<Utc> {
        self.now + self.lead
    }
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    endpoint_id: String,
    #[diesel(sql_type = Integer)]
    rate_limit_per_second: i32,
    #[diesel(sql_type = Timestamptz)]
    paced_until: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
    #[diesel(sql_type = Bool)]
    is_current: bool,
    #[diesel(sql_type = Bool)]
    permitted: bool,
}
