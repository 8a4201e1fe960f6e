//! The permissions that streams watch, by tenant, with the results of their last judgements.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use authority_ids::{DecisionId, TenantId};
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::super::permission_status::Permitted;
use authority_decision::{Gathered, Reason};

/// The longest wait for a judgement. After that, it is unknown whether the permission is still
/// valid.
const LATEST: Duration = Duration::from_secs(60);

/// The reason why a permission has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The request would be denied or held now.
    Changed(Reason),
    /// The request can't be read, or was not judged in time.
    Unknown,
}

/// The result of judging a permission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LiveJudgement {
    /// The number of the tenant's round.
    pub(super) round: u64,
    pub(super) over: Option<Over>,
    /// When to judge the permission again if no write triggers an earlier judgement.
    pub(super) turn: Option<DateTime<Utc>>,
}

/// A permission that a stream watches.
pub(super) struct Permission {
    pub(super) decision_id: DecisionId,
    pub(super) permitted: Arc<Permitted>,
    /// The facts of its last judgement. Permissions with the same look-up keys share them.
    pub(super) judged_on: Mutex<Option<Arc<Gathered>>>,
    found: watch::Sender<LiveJudgement>,
}

impl Permission {
    pub(super) fn found(&self) -> LiveJudgement {
        *self.found.borrow()
    }

    /// Stores a result. Wakes the stream only if it has to react.
    pub(super) fn tell(&self, found: LiveJudgement) {
        self.found.send_if_modified(|known| {
            let is_news = found.over.is_some() || found.turn != known.turn;
            *known = found;
            is_news
        });
    }
}

/// The watched permissions of a tenant, which are judged in rounds.
pub(super) struct Tenant {
    pub(super) id: TenantId,
    /// Locked by the running round.
    pub(super) round: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    permissions: HashMap<u64, Arc<Permission>>,
    /// The number of the next stream.
    next: u64,
    /// The number of rounds so far.
    rounds: u64,
    /// Whether the next round is already requested.
    is_due: bool,
    /// The next round starts after this time.
    rests_until: Option<Instant>,
}

impl Tenant {
    fn new(id: TenantId) -> Self {
        Self { id, round: tokio::sync::Mutex::default(), state: Mutex::default() }
    }

    /// Begins a round. Returns its number and its permissions. Later requests are for the next
    /// round.
    pub(super) fn begin(&self) -> (u64, Vec<Arc<Permission>>) {
        let mut state = self.state.lock();
        state.is_due = false;
        state.rounds += 1;
        (state.rounds, state.permissions.values().cloned().collect())
    }

    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.state.lock().rests_until
    }

    pub(super) fn rest_until(&self, end: Instant) {
        self.state.lock().rests_until = Some(end);
    }
}

/// All tenants with watched permissions. Cheap to clone.
#[derive(Clone)]
pub(super) struct WatchedPermissions {
    tenants: Arc<Mutex<HashMap<TenantId, Arc<Tenant>>>>,
    due: mpsc::UnboundedSender<Arc<Tenant>>,
}

impl WatchedPermissions {
    /// Starts without permissions. The receiver gets each tenant with a due round.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Arc<Tenant>>) {
        let (due, received) = mpsc::unbounded_channel();
        (Self { tenants: Arc::default(), due }, received)
    }

    pub(super) fn watch(&self, decision_id: DecisionId, permitted: Arc<Permitted>) -> Watched {
        let found = watch::Sender::new(LiveJudgement::default());
        let receiver = found.subscribe();
        let judged_on = Mutex::default();
        let permission = Arc::new(Permission { decision_id, permitted, judged_on, found });
        let id = permission.permitted.tenant_id();
        let mut tenants = self.tenants.lock();
        let tenant = tenants.entry(id.clone()).or_insert_with(|| Arc::new(Tenant::new(id.clone())));
        let tenant = Arc::clone(tenant);
        let mut state = tenant.state.lock();
        let number = state.next;
        state.next += 1;
        state.permissions.insert(number, permission);
        drop(state);
        drop(tenants);
        let all = self.clone();
        Watched {
            all,
            tenant,
            number,
            found: receiver,
            asked: None,
            turned: None,
            waits: None,
            round: 0,
        }
    }

    /// Requests the tenant's next round. Returns its number.
    pub(super) fn ask(&self, tenant: &Arc<Tenant>) -> u64 {
        let mut state = tenant.state.lock();
        if !std::mem::replace(&mut state.is_due, true) {
            // Sending can't fail, because the receiver exists longer than this value.
            let _ = self.due.send(Arc::clone(tenant));
        }
        state.rounds + 1
    }

    pub(super) fn all(&self) -> Vec<Arc<Tenant>> {
        self.tenants.lock().values().cloned().collect()
    }
}

/// A stream's permission, for as long as the stream lasts.
pub(super) struct Watched {
    all: WatchedPermissions,
    tenant: Arc<Tenant>,
    number: u64,
    found: watch::Receiver<LiveJudgement>,
    /// The revision for which a judgement was last requested.
    asked: Option<i64>,
    /// The due time for which a judgement was last requested.
    turned: Option<DateTime<Utc>>,
    /// The first requested round that hasn't finished, and when the wait for it began.
    waits: Option<(u64, Instant)>,
    /// The number of the last requested round.
    round: u64,
}

impl Watched {
    /// Returns why the permission is over, if it is.
    pub(super) fn ended(&mut self) -> Option<Over> {
        let found = *self.found.borrow_and_update();
        if found.over.is_some() {
            return found.over;
        }
        let (round, since) = self.waits?;
        if found.round < round {
            return (since.elapsed() > LATEST).then_some(Over::Unknown);
        }
        self.waits = (found.round < self.round).then(|| (self.round, Instant::now()));
        None
    }

    /// Requests a judgement if anything besides reality data has changed since the last request, or
    /// if a judgement is due.
    ///
    /// Call it after the check of the stop conditions. `ruled_at` is the last revision that changed
    /// anything besides reality data.
    pub(super) fn looked(&mut self, ruled_at: i64, now: DateTime<Utc>) {
        let turn = self.turn().filter(|turn| *turn <= now);
        if self.asked == Some(ruled_at) && turn.is_none() {
            return;
        }
        self.asked = Some(ruled_at);
        self.turned = turn.or(self.turned);
        self.round = self.all.ask(&self.tenant);
        self.waits.get_or_insert((self.round, Instant::now()));
    }

    /// Returns the next time at which the permission must be judged because a time limit starts or
    /// ends. `None` if this judgement is already requested.
    pub(super) fn turn(&self) -> Option<DateTime<Utc>> {
        self.found.borrow().turn.filter(|turn| self.turned != Some(*turn))
    }

    /// Waits for a new result.
    pub(super) async fn changed(&mut self) {
        if self.found.changed().await.is_err() {
            // The sender exists as long as this value. This line is not reached.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut tenants = self.all.tenants.lock();
        let mut state = self.tenant.state.lock();
        state.permissions.remove(&self.number);
        if state.permissions.is_empty() {
            tenants.remove(&self.tenant.id);
        }
    }
}
