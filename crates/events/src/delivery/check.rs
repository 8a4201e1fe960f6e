//! Checks in the database whether deliveries may be sent, for all waiting attempts at once.
//!
//! An attempt that arrives during a check waits for the next check. The check of an attempt
//! therefore begins after the attempt was chosen. The rate limit is also applied here: across all
//! nodes, at the moment of sending.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use authority_ids::{DeliveryRef, EndpointRef};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store, prepared};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, Bool, Integer, Text, Timestamptz},
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{job::Job, pace::Pace};

/// Selects the deliveries that this node still leases for longer than an attempt takes. `permitted`
/// is whether they may be sent: the endpoint and the tenant must be active, and neither the
/// endpoint's breaker nor a `Retry-After` of its receiver may delay deliveries. If the breaker is
/// not closed, only the probe is sent. The rows of rate limits are locked in order. The commit does
/// not wait for the disk, because losing these writes in a database crash does no harm. `OFFSET 0`
/// makes the planner look the deliveries up by their ids alone. Otherwise a plan that is cached
/// while the table is empty may use the index of open deliveries.
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
    /// The endpoint's rate limit permits the delivery after this time.
    Later(Duration),
    /// The endpoint must not receive deliveries now.
    Held,
    /// The endpoint has changed since the claim, for example its URL or secrets.
    Changed,
    /// This node no longer has the lease, or the check failed.
    Unknown,
}

type Answer = Result<(), Unsent>;

/// The attempts that wait for a check.
pub(super) struct Checks {
    store: Store,
    waiting: Mutex<Vec<(CheckRequest, oneshot::Sender<Answer>)>>,
    /// Locked by the attempt that makes the check for all waiting attempts.
    turn: tokio::sync::Mutex<()>,
}

struct CheckRequest {
    id: DeliveryRef,
    lease: String,
    is_probe: bool,
    /// The version of the endpoint's row.
    version: String,
}

impl Checks {
    pub(super) fn new(store: Store) -> Self {
        Self { store, waiting: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Returns whether a claimed delivery may be sent now.
    ///
    /// If it may, the delivery counts towards its endpoint's rate limit.
    pub(super) async fn may_send(&self, job: &Job) -> Answer {
        let asked = CheckRequest {
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

    /// Checks all waiting attempts. An attempt without an answer is not sent.
    async fn ask(&self) {
        let (asked, answers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.waiting.lock()).into_iter().unzip();
        let ids: Vec<DeliveryRef> = asked.iter().map(|one: &CheckRequest| one.id.clone()).collect();
        let found = self.store.write_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(check(db, &asked).await?)
        });
        let Ok(mut found) = found.await else { return };
        for (id, answer) in ids.iter().zip(answers) {
            // The attempt may have timed out and dropped its receiver.
            let _ = answer.send(found.remove(id).unwrap_or(Err(Unsent::Unknown)));
        }
    }
}

/// Returns the answers by delivery. Deliveries that this node no longer leases have no answer.
async fn check(db: &mut Db, asked: &[CheckRequest]) -> QueryResult<HashMap<DeliveryRef, Answer>> {
    let found: Vec<DueDelivery> = prepared(MAY_SEND)
        .bind::<Array<Text>, _>(asked.iter().map(|one| &*one.id).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(asked.iter().map(|one| &*one.lease).collect::<Vec<_>>())
        .bind::<Array<Bool>, _>(asked.iter().map(|one| one.is_probe).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(asked.iter().map(|one| &*one.version).collect::<Vec<_>>())
        .load(db)
        .await?;
    let mut paces: BTreeMap<EndpointRef, Admitted> = BTreeMap::new();
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
            .bind::<Array<Text>, _>(paces.keys().map(EndpointRef::as_str).collect::<Vec<_>>())
            .bind::<Array<Timestamptz>, _>(paces.values().map(Admitted::until).collect::<Vec<_>>())
            .execute(db)
            .await?;
    }
    Ok(answers)
}

/// The state of an endpoint's rate limit during one check.
struct Admitted {
    pace: Pace,
    now: DateTime<Utc>,
    lead: TimeDelta,
    any: bool,
}

impl Admitted {
    fn of(row: &DueDelivery) -> Self {
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
struct DueDelivery {
    #[diesel(sql_type = Text, deserialize_as = String)]
    id: DeliveryRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    endpoint_id: EndpointRef,
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
