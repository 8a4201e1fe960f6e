//! The authority of all tenants in memory, built from Postgres and kept current by the change log.
//!
//! A decision reads one tenant's graph under a short lock and never waits for the database. The
//! tail (`tail.rs`) follows `authority_changes` in the order of commits. If its last read is too
//! old, no decisions are made. The fence at commit detects changes that the tail has not read.

mod acts;
mod api_key;
mod approvers;
mod authority;
mod clock_distance;
mod decision_limits;
mod delegation_row;
mod demanded_events;
mod event_demand;
mod faulty_policies;
mod fields;
mod grants;
mod indexed;
mod load;
mod log;
mod node;
mod orgs;
mod people;
mod performers;
mod persons;
pub mod policy_check;
mod present;
mod reality;
mod rows;
mod schemas;
mod settings;
mod tables;
mod tail;
mod tenant;
pub mod time_zones;
mod tool_index;
mod tool_row;
mod world;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use authority_ids::TenantId;
use diesel::QueryResult;
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

pub use acts::{GivenActs, actor, decide_by, decide_on};
pub use api_key::{ApiKey, Unusable, allow_list};
pub use approvers::{Barrier, ProposedAction};
pub use decision_limits::DecisionLimit;
pub use demanded_events::{DECISION_ALLOWED, DECISION_DENIED, DemandedEvents};
pub use grants::GrantView;
pub use node::{Maker, Profile};
pub use persons::{Person, Persons};
pub use present::{Fence, hold_fence, revision};
pub use reality::{AnchorRow, HeadRow};
pub use settings::Settings;
pub use tenant::TenantGraph;
pub use tool_row::binding_tool;
pub use world::Head;

use authority_crypto::ErasedNames;
use authority_store::{Store, row_id};

/// The reason why the graph cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the authority graph is {} ms old; the limit is {} ms", .age.as_millis(), .limit.as_millis())]
    Stale { age: Duration, limit: Duration },
    #[error("this node's clock is {} ms from the database's; the limit is {} ms", .distance.as_millis(), .limit.as_millis())]
    Clock { distance: Duration, limit: Duration },
    #[error("this node's clock has not been compared with the database's yet")]
    ClockUnknown,
    #[error("the authority graph is at revision {at}, not yet at {wanted}")]
    Behind { at: i64, wanted: i64 },
    #[error(transparent)]
    Store(#[from] authority_store::Error),
}

/// A tenant's graph behind its lock. A change replaces single rows.
pub type TenantHandle = Arc<RwLock<TenantGraph>>;

/// The authority of all tenants.
pub struct Graph {
    store: Store,
    settings: Settings,
    erased: ErasedNames,
    tenants: RwLock<HashMap<TenantId, TenantHandle>>,
    /// API keys by public id. They are looked up before the tenant is known.
    keys: RwLock<HashMap<String, Arc<ApiKey>>>,
    /// Tenants by organisation, except deleted tenants. A person's token contains the organisation
    /// and not the tenant's id.
    orgs: RwLock<orgs::Orgs>,
    /// The number of the last applied change.
    position: AtomicI64,
    started: Instant,
    clock: clock_distance::ClockDistance,
    /// When the log was last read to its end, in microseconds since `started`.
    seen: AtomicU64,
    wake: Notify,
    /// The number of started rounds of the tail, and the last round that reached the log's end.
    rounds_started: AtomicU64,
    round_ended: watch::Sender<u64>,
    /// Set while a change is applied. If the change panics, the flag stays set, and the graph is
    /// never fresh again.
    is_torn: AtomicBool,
}

impl Graph {
    /// Returns the tenant's authority. Fails if the graph is too old to decide on.
    pub fn tenant(&self, id: &TenantId) -> Result<Option<TenantHandle>, Error> {
        self.fresh()?;
        Ok(self.tenants.read().get(id).cloned())
    }

    /// Returns the tenant's authority at this revision or later. Waits until the graph reaches it.
    pub async fn tenant_at(
        &self,
        id: &TenantId,
        revision: i64,
    ) -> Result<Option<TenantHandle>, Error> {
        let at = |handle: &Option<TenantHandle>| {
            handle.as_ref().map_or(0, |handle| handle.read().revision)
        };
        let found = self.tenant(id)?;
        if at(&found) >= revision {
            return Ok(found);
        }
        self.catch_up().await;
        let found = self.tenant(id)?;
        let at = at(&found);
        if at < revision { Err(Error::Behind { at, wanted: revision }) } else { Ok(found) }
    }

    /// Checks whether decisions may use the graph.
    ///
    /// The change log must have been read to its end recently enough. This node's clock, which
    /// windows depend on, must be close enough to the database's clock.
    pub fn fresh(&self) -> Result<(), Error> {
        self.is_followed()?;
        self.is_on_time()
    }

    /// Checks whether this node's clock differs from the database's by at most the staleness limit.
    pub fn is_on_time(&self) -> Result<(), Error> {
        let distance = self.clock.get().ok_or(Error::ClockUnknown)?;
        let limit = self.settings.max_staleness;
        if distance > limit { Err(Error::Clock { distance, limit }) } else { Ok(()) }
    }

    /// Returns the difference from the database's clock; `None` before the first comparison.
    pub fn clock_distance(&self) -> Option<Duration> {
        self.clock.get()
    }

    /// Checks whether the change log was read to its end recently enough.
    pub fn is_followed(&self) -> Result<(), Error> {
        let (age, limit) = (self.age(), self.settings.max_staleness);
        if age > limit { Err(Error::Stale { age, limit }) } else { Ok(()) }
    }

    /// Returns when the graph becomes too old to decide on, unless the change log is read to its
    /// end before.
    pub fn fresh_until(&self) -> Instant {
        let seen = Duration::from_micros(self.seen.load(Ordering::Acquire));
        self.started + seen + self.settings.max_staleness
    }

    /// Subscribes to new revisions of the tenant. Changes of other tenants do not wake the
    /// receiver.
    pub fn watch(&self, tenant_id: &TenantId) -> watch::Receiver<i64> {
        self.handle(tenant_id).write().watch()
    }

    /// Returns the number of receivers that watch the tenant.
    pub fn watchers(&self, tenant_id: &TenantId) -> usize {
        self.tenants.read().get(tenant_id).map_or(0, |handle| handle.read().watchers())
    }

    /// Returns how long ago the change log was read to its end.
    pub fn age(&self) -> Duration {
        let seen = Duration::from_micros(self.seen.load(Ordering::Acquire));
        self.started.elapsed().saturating_sub(seen)
    }

    /// Records that a read that started at this time reached the end of the log.
    fn saw(&self, started: Instant) {
        let since = started.saturating_duration_since(self.started).as_micros();
        self.seen.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Returns the API key with this public id, in any state.
    pub fn api_key(&self, public_id: &str) -> Option<Arc<ApiKey>> {
        self.keys.read().get(public_id).cloned()
    }

    /// Returns the number of tenants in the graph.
    pub fn tenants(&self) -> usize {
        self.tenants.read().len()
    }

    /// Returns the handle of a row's tenant. Parses a tenant's id only for its first row.
    fn handle_of_row(&self, tenant_id: &str) -> QueryResult<TenantHandle> {
        if let Some(known) = self.tenants.read().get(tenant_id) {
            return Ok(Arc::clone(known));
        }
        Ok(self.handle(&row_id(tenant_id)?))
    }

    fn handle(&self, tenant_id: &TenantId) -> TenantHandle {
        if let Some(handle) = self.tenants.read().get(tenant_id) {
            return Arc::clone(handle);
        }
        let empty = || {
            let valid_for_seconds = self.settings.valid_for_seconds;
            let graph = TenantGraph::new(valid_for_seconds, self.erased.clone());
            TenantHandle::new(RwLock::new(graph))
        };
        Arc::clone(self.tenants.write().entry(tenant_id.clone()).or_insert_with(empty))
    }
}
