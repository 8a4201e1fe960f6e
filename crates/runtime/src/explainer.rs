//! Finds the smallest change that would alter a denial. The search reads facts about other requests
//! from the graph.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use super::facts::FactSource;
use authority_api::error::ApiError;
use authority_decision::{
    Draft, Facts, PolicyChange, Request,
    facts::Spent,
    remedy::{self, Remedy},
};
use authority_graph::{TenantHandle, time_zones};
use authority_process::compute::ComputePool;

/// The longest time for a search. An explanation must not delay a response for long.
const LONGEST: Duration = Duration::from_secs(1);

/// A denied request and the facts used for the decision.
pub(super) struct Denied {
    pub(super) request: Request,
    pub(super) facts: Facts,
    pub(super) at: DateTime<Utc>,
    /// The source of facts about other requests. `None` limits the search to `facts`.
    pub(super) handle: Option<TenantHandle>,
    pub(super) policies: Arc<PolicyChange>,
}

/// Searches for the smallest change. Cheap to clone.
#[derive(Clone)]
pub(super) struct Explainer {
    pub(super) facts: FactSource,
    pub(super) pool: ComputePool,
}

impl Explainer {
    /// Returns the smallest change. Also `None` if the search fails, because an explanation is
    /// optional.
    pub(super) async fn smallest_change(&self, denied: Denied) -> Option<Remedy> {
        let spent = match self.spent_beside(&denied).await {
            Ok(spent) => spent,
            Err(refusal) => {
                tracing::warn!(error = %refusal, "failed to read counters to explain a denial");
                return None;
            }
        };
        let tenant_id = denied.request.tenant().clone();
        // Runs on the compute pool, because the search may make hundreds of decisions.
        let searching = self.pool.run_within(tenant_id.as_str(), LONGEST, move |turn| {
            let Denied { request, facts, at, handle, policies } = denied;
            let around = |other: &Request| {
                let gathered = Arc::new(handle.as_ref()?.read().gather(other));
                let gathered = policies.applied(other, &gathered);
                let mut facts = Facts { spent: spent.clone(), ..Facts::new(gathered) };
                time_zones::complete(&other.action, &mut facts, at);
                Some(facts)
            };
            remedy::smallest(&request, &facts, at, &around, &|| turn.is_wanted())
        });
        searching.await.unwrap_or_else(|error| {
            tracing::debug!(%error, "failed to find the smallest change of a denial");
            None
        })
    }

    /// Reads the counters of all the subject's delegations, not only of the delegation that the
    /// request names.
    async fn spent_beside(&self, denied: &Denied) -> Result<Spent, ApiError> {
        let mut spent = denied.facts.spent.clone();
        let (Some(handle), Some(_)) = (&denied.handle, &denied.request.delegation_id) else {
            return Ok(spent);
        };
        let draft = denied.request.clone().into_draft();
        let draft = Draft { delegation_id: None, approval_id: None, ..draft };
        let Ok(unnamed) = Request::new(draft) else { return Ok(spent) };
        let gathered = Arc::new(handle.read().gather(&unnamed));
        let other = self
            .facts
            .load_counters_and_approval(&unnamed, &gathered, denied.at)
            .await?
            .facts
            .spent;
        spent.0.extend(other.0);
        Ok(spent)
    }
}
