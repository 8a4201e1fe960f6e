//! The smallest change that would alter a denial, with what the graph knows of other questions.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use super::facts::FactSource;
use authority_api::error::ApiError;
use authority_core::{compute::ComputePool, graph::TenantHandle};
use authority_decision::{
    Draft, Facts, PolicyChange, Request,
    facts::Spent,
    remedy::{self, Remedy},
};

/// An explanation is no reason to keep an answer back for long.
const LONGEST: Duration = Duration::from_secs(1);

/// A denied question and what it was judged on.
pub(super) struct Denied {
    pub(super) request: Request,
    pub(super) facts: Facts,
    pub(super) at: DateTime<Utc>,
    /// Where facts about other questions come from; none: from these facts alone.
    pub(super) handle: Option<TenantHandle>,
    pub(super) policies: Arc<PolicyChange>,
}

/// Looks for it. Cheap to clone.
#[derive(Clone)]
pub(super) struct Explainer {
    pub(super) facts: FactSource,
    pub(super) pool: ComputePool,
}

impl Explainer {
    /// None too where it cannot be found out: it explains, and no answer waits for the lack of it.
    pub(super) async fn smallest_change(&self, denied: Denied) -> Option<Remedy> {
        let spent = match self.spent_beside(&denied).await {
            Ok(spent) => spent,
            Err(refusal) => {
                tracing::warn!(%refusal, "cannot read counters to explain a denial");
                return None;
            }
        };
        let tenant_id = denied.request.tenant_id.clone();
        // Some hundred decisions may be taken: not on a thread that others wait for.
        let searching = self.pool.run_within(&tenant_id, LONGEST, move |turn| {
            let Denied { request, facts, at, handle, policies } = denied;
            let around = |other: &Request| {
                let gathered = Arc::new(handle.as_ref()?.read().gather(other));
                let gathered = policies.applied(other, &gathered);
                Some(Facts { gathered, spent: spent.clone(), approval: None })
            };
            remedy::smallest(&request, &facts, at, &around, &|| turn.is_wanted())
        });
        searching.await.unwrap_or_else(|error| {
            tracing::info!(%error, "a denial goes without its smallest change");
            None
        })
    }

    /// The counters of the subject's other delegations beside those of the one that it named.
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
