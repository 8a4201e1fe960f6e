//! The authority of all tenants: one graph for each tenant, with its age.

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

use super::{
    api_key::ApiKey, clock_distance::ClockDistance, settings::Settings, tenant::TenantGraph,
};
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
    pub(super) store: Store,
    pub(super) settings: Settings,
    pub(super) erased: ErasedNames,
    pub(super) tenants: RwLock<HashMap<TenantId, TenantHandle>>,
    /// API keys by public id. They are looked up before the tenant is known.
    pub(super) keys: RwLock<HashMap<String, Arc<ApiKey>>>,
    /// Tenants by organisation, except deleted tenants. A person's token contains the organisation
    /// and not the tenant's id.
    pub(super) orgs: RwLock<HashMap<Box<str>, TenantId>>,
    /// The number of the last applied change.
    pub(super) position: AtomicI64,
    pub(super) started: Instant,
    pub(super) clock: ClockDistance,
    /// When the log was last read to its end, in microseconds since `started`.
    pub(super) seen: AtomicU64,
    pub(super) wake: Notify,
    /// The number of started rounds of the tail, and the last round that reached the log's end.
    pub(super) rounds_started: AtomicU64,
    pub(super) round_ended: watch::Sender<u64>,
    /// Set while a change is applied. If the change panics, the flag stays set, and the graph is
    /// never fresh again.
    pub(super) is_torn: AtomicBool,
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
    pub(super) fn saw(&self, started: Instant) {
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
    pub(super) fn handle_of_row(&self, tenant_id: &str) -> QueryResult<TenantHandle> {
        if let Some(known) = self.tenants.read().get(tenant_id) {
            return Ok(Arc::clone(known));
        }
        Ok(self.handle(&row_id(tenant_id)?))
    }

    pub(super) fn handle(&self, tenant_id: &TenantId) -> TenantHandle {
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
