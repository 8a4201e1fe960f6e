//! Judges watched permissions again after a change of authority. Permissions are judged in rounds,
//! at most one round a second for each tenant.
//!
//! A round first compares each permission's current facts with the facts of its last judgement, in
//! memory. It then reads the stored requests of permissions with changed facts, a few at a time,
//! and judges them. Comparing and judging run on the threads for simulations, after the streams
//! have checked their stop conditions. A long round is followed by a rest of the same length.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use authority_ids::TenantId;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{Mutex, Semaphore, mpsc},
    time::sleep_until,
};

use super::{
    super::{cache, facts::FactSource, stored_permission::StoredPermission},
    watched::{LiveJudgement, Over, Permission, Tenant, WatchedPermissions},
};
use authority_api::error::{ApiError, ErrorCode};
use authority_decision::{
    Gathered, Request,
    turn::{is_same, next_turn},
};
use authority_graph::TenantHandle;
use authority_process::{
    clock::Clock,
    compute::{ComputePool, Turn},
    worker::{Context, Worker},
};
use authority_store::{self as store, Scope};

/// The minimum time between two rounds of a tenant.
const EVERY: Duration = Duration::from_secs(1);
/// The pause before a round.
///
/// During the pause, the streams check their stop conditions, and further changes join the round.
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of stored requests in memory for each concurrent part of a round.
const BATCH: usize = 50;
/// The maximum number of parts of rounds that run at a time. The other connections and threads stay
/// free.
const PLACES: usize = 2;

/// Judges the permissions of all tenants.
pub(super) struct Rounds {
    clock: Clock,
    facts: FactSource,
    pool: ComputePool,
    watched: WatchedPermissions,
    due: Mutex<mpsc::UnboundedReceiver<Arc<Tenant>>>,
    places: Semaphore,
}

/// Permissions with facts that have changed since their last judgement.
type Changed = Vec<Arc<Permission>>;
/// The permissions of a round that haven't been compared yet.
type Rest = std::vec::IntoIter<Arc<Permission>>;
type Stored = HashMap<String, StoredPermission>;

impl Rounds {
    /// Creates the set of watched permissions, and the worker that judges them.
    pub(super) fn watching(
        clock: Clock,
        facts: FactSource,
        pool: ComputePool,
    ) -> (WatchedPermissions, Worker) {
        let (watched, due) = WatchedPermissions::new();
        let (due, places) = (Mutex::new(due), Semaphore::new(PLACES));
        let rounds = Arc::new(Self { clock, facts, pool, watched: watched.clone(), due, places });
        let worker = Worker::endless("permission_judge", move |context| {
            let rounds = Arc::clone(&rounds);
            async move {
                rounds.run(&context).await;
                Ok::<_, store::Error>(())
            }
        });
        (watched, worker)
    }

    async fn run(&self, context: &Context) {
        let mut due = self.due.lock().await;
        // Having no work counts as success.
        context.succeeded();
        let round = |tenant| context.round(self.round(tenant));
        // All tenants get a round first, because a run that panicked may have lost requests for
        // rounds.
        let mut rounds: FuturesUnordered<_> = self.watched.all().into_iter().map(round).collect();
        loop {
            tokio::select! {
                () = context.stopped() => return,
                Some(tenant) = due.recv() => rounds.push(round(tenant)),
                Some(_) = rounds.next() => {}
            }
        }
    }

    async fn round(&self, tenant: Arc<Tenant>) -> Result<(), ApiError> {
        let _alone = tenant.round.lock().await;
        let pause = Instant::now() + PAUSE;
        sleep_until(tenant.rests_until().map_or(pause, |end| end.max(pause)).into()).await;
        let begun = Instant::now();
        let (number, watched) = tenant.begin();
        let judged = self.judge(&tenant.id, number, watched.into_iter()).await;
        tenant.rest_until(begun + EVERY.max(begun.elapsed() * 2));
        if judged.is_err() {
            // The next round covers the permissions that this one missed.
            self.watched.ask(&tenant);
        }
        judged
    }

    async fn judge(&self, id: &TenantId, number: u64, mut rest: Rest) -> Result<(), ApiError> {
        while rest.len() > 0 {
            let _place = self.place().await?;
            let round = self.slice(id, number)?;
            let mut changed = Changed::new();
            let comparing = self.pool.run(id.as_str(), move |turn| {
                round.compare(&mut rest, &mut changed, turn);
                (rest, changed)
            });
            (rest, changed) = comparing.await?;
            if !changed.is_empty() {
                self.judge_some(id, number, changed).await?;
            }
        }
        Ok(())
    }

    async fn judge_some(&self, id: &TenantId, number: u64, some: Changed) -> Result<(), ApiError> {
        let ids: Vec<String> = some.iter().map(|one| one.decision_id.to_string()).collect();
        let tenant_id = id.clone();
        let scope = Scope { tenant: Some(id.clone()), ..Scope::service() };
        let read = self.facts.store.read_tx(&scope, async move |db| {
            Ok::<_, store::Error>(StoredPermission::read(db, &tenant_id, &ids).await?)
        });
        let (mut stored, mut rest) = (read.await?, some.into_iter());
        while rest.len() > 0 {
            let round = self.slice(id, number)?;
            let judging = self.pool.run(id.as_str(), move |turn| {
                round.judge(&mut rest, &stored, turn);
                (rest, stored)
            });
            (rest, stored) = judging.await?;
        }
        Ok(())
    }

    async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, ApiError> {
        self.places.acquire().await.map_err(|_| ApiError::plain(ErrorCode::Internal))
    }

    /// Creates a slice of a round, on the tenant's current authority.
    fn slice(&self, id: &TenantId, number: u64) -> Result<Slice, ApiError> {
        let (handle, facts) = (self.facts.graph.tenant(id)?, self.facts.clone());
        Ok(Slice { handle, facts, now: self.clock.now(), number, gathered: HashMap::new(), at: 0 })
    }
}

/// A part of a round, on one thread.
struct Slice {
    handle: Option<TenantHandle>,
    facts: FactSource,
    now: DateTime<Utc>,
    number: u64,
    /// The gathered facts by look-up key, at the revision `at`.
    gathered: HashMap<String, Arc<Gathered>>,
    at: i64,
}

impl Slice {
    /// Moves permissions with changed facts from `rest` to `changed`, up to one batch. Other
    /// permissions are marked as judged in this round.
    fn compare(mut self, rest: &mut Rest, changed: &mut Changed, turn: &Turn) {
        while turn.is_wanted() && !turn.is_over() && changed.len() < BATCH {
            let Some(permission) = rest.next() else { break };
            let found = permission.found();
            if found.over.is_some() {
                continue;
            }
            let present = self.gather(&permission.permitted.request);
            let mut judged_on = permission.judged_on.lock();
            let is_known = judged_on.as_ref().is_some_and(|known| is_same(known, &present));
            let has_turned = found.turn.is_some_and(|turn| turn <= self.now);
            if is_known && !has_turned && !rests_on_acts(&permission, &present) {
                *judged_on = Some(present);
                permission.tell(LiveJudgement { round: self.number, ..found });
            } else {
                drop(judged_on);
                changed.push(permission);
            }
        }
    }

    fn judge(mut self, rest: &mut Rest, stored: &Stored, turn: &Turn) {
        while turn.is_wanted() && !turn.is_over() {
            let Some(permission) = rest.next() else { break };
            permission.tell(self.found(&permission, stored));
        }
    }

    fn found(&mut self, permission: &Permission, stored: &Stored) -> LiveJudgement {
        let (id, round) = (permission.decision_id.as_str(), self.number);
        let over = |why| LiveJudgement { round, over: Some(why), turn: None };
        let question = match stored.get(id).map(StoredPermission::question) {
            Some(Ok(question)) => question,
            Some(Err(error)) => {
                tracing::warn!(
                    %error,
                    decision.id = id,
                    "failed to read back a watched permission"
                );
                return over(Over::Unknown);
            }
            None => {
                tracing::warn!(
                    decision.id = id,
                    "found a watched permission removed from the tables"
                );
                return over(Over::Unknown);
            }
        };
        let present = self.gather(&question.permitted.request);
        let handle = self.handle.as_ref();
        let verdict = self.facts.judge_again(handle, &question, &present, None, self.now);
        if !verdict.decision.permits() {
            return over(Over::Changed(verdict.reason_code));
        }
        let turn = next_turn(&present, self.now);
        *permission.judged_on.lock() = Some(present);
        LiveJudgement { round, over: None, turn }
    }

    /// Gathers the tenant's facts for the request. Empty for an unknown tenant.
    fn gather(&mut self, request: &Request) -> Arc<Gathered> {
        let Some(handle) = &self.handle else { return Arc::default() };
        let tenant = handle.read();
        if tenant.revision != self.at {
            (self.at, self.gathered) = (tenant.revision, HashMap::new());
        }
        let gather = || Arc::new(tenant.gather(request));
        Arc::clone(self.gathered.entry(cache::key(request)).or_insert_with(gather))
    }
}

/// Whether the permission depends on people's acts. Such a permission is always judged, because the
/// gathered facts alone do not determine which acts count.
fn rests_on_acts(permission: &Permission, gathered: &Gathered) -> bool {
    let mut links = gathered.delegations.iter().flat_map(|chain| &chain.0);
    permission.permitted.approval.is_some()
        || !gathered.reality.overrides.is_empty()
        || links.any(|link| !link.standing.is_empty())
}
