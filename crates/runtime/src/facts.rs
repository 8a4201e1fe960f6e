//! The source of a decision's facts. It reads the tenant's graph in memory, and the database for
//! data that changes from call to call.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use super::{cache::Cache, fault::fault};
use authority_api::error::ApiError;
use authority_decision::{Facts, Gathered, Request};
use authority_evidence::PreparedFacts;
use authority_graph::{self as graph, DemandedEvents, Graph, TenantHandle, time_zones};
use authority_ledger::spending::{Cited, CounterQuery};
use authority_store::{self as store, Db, Scope, Store};

/// Reads facts. Cheap to clone.
#[derive(Clone)]
pub(super) struct FactSource {
    pub(super) graph: Arc<Graph>,
    pub(super) store: Store,
    cache: Arc<Cache>,
}

/// How a tenant's decisions are recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct RecordingSettings {
    /// Whether commits return without waiting for the disk.
    pub(super) relaxed: bool,
    /// How long a held request waits for approvals. `None` if the tenant has no setting.
    pub(super) approval_ttl: Option<Duration>,
    /// Whether requests use ready approvals without citing them.
    pub(super) cites_ready: bool,
    /// For how many seconds a declined request is denied. `None` if the tenant has no setting.
    pub(super) declined_for: Option<u32>,
    /// The maximum number of pending approval requests of one subject.
    pub(super) open_requests: u32,
    /// The decisions that become events.
    pub(super) events: DemandedEvents,
}

/// The facts of a request, and the approval that it cites.
pub(super) struct LoadedFacts {
    pub(super) facts: Facts,
    pub(super) cited: Option<Cited>,
}

impl FactSource {
    pub(super) fn new(graph: Arc<Graph>, store: Store) -> Self {
        Self { graph, store, cache: Arc::default() }
    }

    /// Returns the tenant's graph at this revision or later. A requested revision that the database
    /// doesn't have is the caller's error. A revision that only this node lacks is reported as the
    /// service's error.
    #[tracing::instrument(level = "debug", skip_all, fields(revision = wanted))]
    pub(super) async fn tenant_at(
        &self,
        request: &Request,
        wanted: i64,
    ) -> Result<Option<TenantHandle>, ApiError> {
        let found = self.graph.tenant_at(request.tenant(), wanted).await;
        let asked = request.at_least_revision.unwrap_or_default();
        if asked > 0 && matches!(found, Err(graph::Error::Behind { .. })) {
            let (scope, tenant_id) = (Scope::service(), request.tenant().clone());
            let read = self.store.read_tx(&scope, async move |db| {
                Ok::<_, store::Error>(graph::revision(db, &tenant_id).await?)
            });
            let present = Box::pin(read).await?;
            if present < asked {
                let problem = format!("is newer than the tenant's present revision: {present}");
                return Err(ApiError::field("at_least_revision", problem));
            }
        }
        Ok(found?)
    }

    /// Returns the facts of the tenant's authority for the request, and how the tenant's decisions
    /// are recorded. An unknown tenant has no authority at all.
    #[tracing::instrument(level = "debug", skip_all)]
    pub(super) fn gather(
        &self,
        handle: Option<&TenantHandle>,
        request: &Request,
    ) -> Result<(Arc<PreparedFacts>, RecordingSettings), ApiError> {
        let Some(handle) = handle else {
            let nothing = PreparedFacts::new(Gathered::default(), request)?;
            return Ok((Arc::new(nothing), RecordingSettings::default()));
        };
        let graph = handle.read();
        let facts = self.cache.gather(&graph, request)?;
        let recording = RecordingSettings {
            relaxed: graph.profile.relaxed,
            approval_ttl: graph.profile.approval_ttl,
            cites_ready: graph.profile.cites_ready,
            declined_for: graph.profile.declined_for,
            open_requests: graph.profile.open_requests,
            events: graph.demanded_events(),
        };
        Ok((facts, recording))
    }

    /// Returns the facts including counters, the cited approval and the offsets of time zones. These
    /// change from call to call. Only requests that need data from the database wait for it.
    #[tracing::instrument(level = "debug", skip_all)]
    pub(super) async fn load_counters_and_approval(
        &self,
        request: &Request,
        gathered: &Arc<Gathered>,
        at: DateTime<Utc>,
    ) -> Result<LoadedFacts, ApiError> {
        let mut facts = Facts::new(Arc::clone(gathered));
        time_zones::complete(&request.action, &mut facts, at);
        let wanted = CounterQuery::of(request, &facts.gathered, at).map_err(fault)?;
        let Some(wanted) = wanted else { return Ok(LoadedFacts { facts, cited: None }) };
        let scope = Scope { tenant: Some(request.tenant().clone()), ..Scope::service() };
        let read = async move |db: &mut Db| Ok::<_, store::Error>(wanted.read(db).await?);
        let (spent, cited) = Box::pin(self.store.read_tx(&scope, read)).await?;
        facts.spent = spent;
        facts.approval = cited.as_ref().map(|cited| cited.approval.clone());
        Ok(LoadedFacts { facts, cited })
    }
}
