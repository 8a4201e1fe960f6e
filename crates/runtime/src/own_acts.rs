//! Removes people's acts from the facts if they don't count under current authority. Such acts are
//! neither read by the core nor sealed.
//!
//! An act doesn't count if its person is now on the requesting side. This side consists of the
//! people behind the credential, the request, the subject and the authority in use.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{
    facts::{FactSource, LoadedFacts},
    requester::people_of,
};
use authority_api::{error::ApiError, identity::Caller};
use authority_decision::{Request, Verdict, facts::Gathered};
use authority_evidence::PreparedFacts;
use authority_graph::{self as graph, GivenActs, Persons, TenantHandle};
use authority_ledger::spending::Cited;

/// The data that determines which acts count.
pub(super) struct Counting {
    handle: TenantHandle,
    /// The people behind the credential.
    claimed_by: Persons,
}

impl FactSource {
    /// Returns the data that determines which acts count. `None` if the decision depends on no act,
    /// which is usual. The data is read from memory after the facts were gathered. If authority has
    /// changed in between, the decision is stale and is not stored. `claims` is the caller if
    /// their call would use the cited approval.
    pub(super) fn counting(
        &self,
        claims: Option<&Caller>,
        handle: Option<&TenantHandle>,
        request: &Request,
        gathered: &Gathered,
    ) -> Option<Counting> {
        let mut links = gathered.delegations.iter().flat_map(|chain| &chain.0);
        let stands = links.any(|link| !link.standing.is_empty());
        let lifts = !gathered.reality.overrides.is_empty();
        if request.approval_id.is_none() && !stands && !lifts {
            return None;
        }
        let claimed_by = claims.map(|caller| people_of(&self.graph, caller)).unwrap_or_default();
        Some(Counting { handle: Arc::clone(handle?), claimed_by })
    }

    /// Decides. Ignores acts on the cited approval unless they count under the authority in use.
    #[tracing::instrument(name = "evaluate", level = "debug", skip_all)]
    pub(super) fn decide_on(
        &self,
        request: &Request,
        seen: &mut LoadedFacts,
        counting: Option<&Counting>,
        at: DateTime<Utc>,
    ) -> Verdict {
        let Some(cited) = &seen.cited else {
            return authority_decision::decide(request, &seen.facts, at);
        };
        let handle = counting.map(|counting| &counting.handle);
        let given = self.given(cited, counting);
        graph::decide_on(handle, request, &mut seen.facts, &given, at)
    }

    /// Returns the acts on an approval, with everyone on its requesting side.
    pub(super) fn given<'c>(&self, cited: &'c Cited, counting: Option<&Counting>) -> GivenActs<'c> {
        let mut requesters = self.graph.persons(&cited.requested_by, &cited.asker_emails);
        if let (Some(by), Some(counting)) = (&mut requesters, counting) {
            by.add(&counting.claimed_by);
        }
        GivenActs { acts: &cited.acts, requesters }
    }
}

impl Counting {
    /// Returns the facts without acts (overrides, acts on standing approvals) that do not count.
    pub(super) fn in_facts(
        &self,
        facts: Arc<PreparedFacts>,
        request: &Request,
    ) -> Result<Arc<PreparedFacts>, ApiError> {
        match self.in_gathered(&facts.gathered, request) {
            Some(gathered) => Ok(Arc::new(PreparedFacts::new(gathered, request)?)),
            None => Ok(facts),
        }
    }

    /// Returns facts that aren't prepared yet, without the acts that don't count. `None` if all
    /// acts count.
    pub(super) fn in_gathered(&self, gathered: &Gathered, request: &Request) -> Option<Gathered> {
        let tenant = self.handle.read();
        let (subject, by) = (&request.subject, &self.claimed_by);
        let delegations = tenant.standing_that_counts(subject, by, &gathered.delegations);
        let reality = tenant.lifting_that_counts(subject, &request.action, by, &gathered.reality);
        drop(tenant);
        if delegations.is_none() && reality.is_none() {
            return None;
        }
        let mut gathered = gathered.clone();
        gathered.delegations = delegations.unwrap_or(gathered.delegations);
        gathered.reality = reality.unwrap_or(gathered.reality);
        Some(gathered)
    }
}
