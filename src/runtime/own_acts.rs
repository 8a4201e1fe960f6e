//! Acts that do not count in a decision: those of people for whom the calling credential stands, and,
//! once the tenant lets nobody approve in their own interest any more, those that say `self`.
//!
//! They are left out of the facts that the core sees and that are sealed.

use std::sync::Arc;

use super::Runtime;
use authority_decision::{
    Request,
    facts::{Approval, Chain, Delegation, Gathered, Signature},
};
use authority_engine::{error::Refusal, evidence::PreparedFacts, graph::Cell, identity::Caller};

/// Whose acts count in a decision.
#[derive(Default)]
pub(super) struct Counted {
    /// For whom the credential stands.
    people: Vec<String>,
    self_approval: bool,
}

impl Runtime {
    /// Whose acts count when this caller asks. From memory, and read after the facts were gathered: what
    /// has changed since makes the decision stale.
    pub(super) fn counted(
        &self,
        caller: &Caller,
        cell: Option<&Cell>,
        request: &Request,
        gathered: &Gathered,
    ) -> Counted {
        // Most decisions rest on nobody's act.
        let mut links = gathered.delegations.iter().flat_map(|chain| &chain.0);
        if request.approval_id.is_none() && links.all(|link| link.standing.is_empty()) {
            return Counted::default();
        }
        let self_approval = cell.is_some_and(|cell| cell.read().profile.self_approval);
        Counted { people: self.people_of(caller), self_approval }
    }
}

impl Counted {
    fn counts(&self, act: &Signature) -> bool {
        if act.own_interest { self.self_approval } else { !self.people.contains(&act.by) }
    }

    /// The approval without the acts that do not count.
    pub(super) fn in_approval(&self, approval: Option<Approval>) -> Option<Approval> {
        let mut approval = approval?;
        approval.given.retain(|act| self.counts(act));
        Some(approval)
    }

    /// The facts with delegations' standing approvals less the acts that do not count.
    pub(super) fn in_facts(
        &self,
        facts: Arc<PreparedFacts>,
        request: &Request,
    ) -> Result<Arc<PreparedFacts>, Refusal> {
        let all_count = |link: &Arc<Delegation>| link.standing.iter().all(|act| self.counts(act));
        if facts.gathered.delegations.iter().flat_map(|chain| &chain.0).all(all_count) {
            return Ok(facts);
        }
        let mut gathered = Gathered::clone(&facts.gathered);
        for link in gathered.delegations.iter_mut().flat_map(|Chain(links)| links) {
            if !all_count(link) {
                Arc::make_mut(link).standing.retain(|act| self.counts(act));
            }
        }
        Ok(Arc::new(PreparedFacts::new(gathered, request)?))
    }
}
