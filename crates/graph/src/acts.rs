//! Determines which approvals count. Only the current authority matters, not the authority at the
//! time of signing. Approvals by people who are now on the requesting side do not count, and each
//! person counts once.

use std::sync::Arc;

use authority_ids::{DelegationRef, PrincipalRef};
use authority_model::proto::approval::ApprovalAct;
use chrono::{DateTime, Utc};

use super::{
    approvers::ProposedAction,
    graph::TenantHandle,
    node::{Addresses, Maker},
    persons::{Person, Persons, subject},
    tenant::TenantGraph,
};
use authority_decision::{
    Facts, Request, Verdict, decide,
    reality::{Override, Reality},
    records::{Chain, Delegation, Signature},
};

/// The person who acted, with the address from their token.
pub fn actor(act: &ApprovalAct) -> Person<'_> {
    // For an actor without an address, the name is the subject.
    let is_address = act.name.contains('@') || act.name != subject(&act.by);
    Person { identity: &act.by, email: is_address.then_some(&act.name) }
}

pub(super) fn addresses(acts: &[ApprovalAct]) -> Addresses {
    let known = acts.iter().map(actor);
    known.filter_map(|who| Some((who.identity.to_owned(), who.email?.to_owned()))).collect()
}

impl Maker {
    pub fn of(act: &ApprovalAct, own_interest: bool) -> Self {
        let who = actor(act);
        let (identity, email) = (who.identity.to_owned(), who.email.map(str::to_owned));
        Self { identity, email, own_interest }
    }

    fn person(&self) -> Person<'_> {
        Person { identity: &self.identity, email: self.email.as_deref() }
    }
}

/// The acts of people on an approval, and its requesters.
#[derive(Clone, Debug)]
pub struct GivenActs<'a> {
    pub acts: &'a [ApprovalAct],
    /// The people who request or claim the approval, and the people behind their API keys; `None`
    /// if an API key's people are not known.
    pub requesters: Option<Persons>,
}

/// Decides with only the signatures that count under the authority in use.
///
/// Removes all other signatures of the approval from the facts.
pub fn decide_on(
    handle: Option<&TenantHandle>,
    request: &Request,
    facts: &mut Facts,
    given: &GivenActs<'_>,
    at: DateTime<Utc>,
) -> Verdict {
    decide_by(handle, request, facts, given, |facts| decide(request, facts, at))
}

/// Does the same as [`decide_on`], with a custom function that decides on the facts.
pub fn decide_by(
    handle: Option<&TenantHandle>,
    request: &Request,
    facts: &mut Facts,
    given: &GivenActs<'_>,
    decide: impl Fn(&Facts) -> Verdict,
) -> Verdict {
    let verdict = decide(facts);
    let Some(approval) = &mut facts.approval else { return verdict };
    let before = approval.given.len();
    match (handle, &given.requesters) {
        (Some(handle), Some(requesters)) => {
            // The authority in use does not depend on the approvers.
            let chain = verdict.authority.as_ref().map_or(&[][..], |used| &used.chain);
            let proposed = ProposedAction { subject: &request.subject, chain, requesters };
            handle.read().keep_counting(proposed, &mut approval.given, given.acts);
        }
        _ => approval.given.clear(),
    }
    if approval.given.len() == before { verdict } else { decide(facts) }
}

impl TenantGraph {
    /// Stores the signers of a delegation's current version, with their addresses.
    pub(super) fn signed(&mut self, delegation_id: &DelegationRef, signers: Addresses) {
        if signers.is_empty() {
            self.signers.remove(delegation_id);
        } else {
            self.signers.insert(delegation_id.clone(), signers);
        }
    }

    /// Removes the signatures that do not count from `given`. `acts` has the signers' addresses.
    pub fn keep_counting(
        &self,
        proposed: ProposedAction<'_>,
        given: &mut Vec<Signature>,
        acts: &[ApprovalAct],
    ) {
        self.keep(proposed, given, &addresses(acts));
    }

    fn keep(
        &self,
        proposed: ProposedAction<'_>,
        given: &mut Vec<Signature>,
        addresses: &Addresses,
    ) {
        let mut before: Vec<Signature> = Vec::new();
        given.retain(|act| {
            let who = signer(act, addresses);
            let again = before.iter().any(|other| self.are_one(who, signer(other, addresses)));
            let counts = !again && self.counts(proposed, act.own_interest, who);
            if counts {
                before.push(act.clone());
            }
            counts
        });
    }

    /// Returns the chains with only the standing signatures that count when this subject acts under
    /// a chain.
    ///
    /// Returns `None` if all signatures count.
    pub fn standing_that_counts(
        &self,
        subject: &PrincipalRef,
        requesters: &Persons,
        chains: &[Chain],
    ) -> Option<Vec<Chain>> {
        let mut kept: Option<Vec<Chain>> = None;
        for (place, chain) in chains.iter().enumerate() {
            let leaf: Vec<DelegationRef> =
                chain.0.first().map(|leaf| leaf.id.clone()).into_iter().collect();
            let proposed = ProposedAction { subject, chain: &leaf, requesters };
            for (height, link) in chain.0.iter().enumerate() {
                let standing = self.signatures_that_count(proposed, link);
                if standing.len() < link.standing.len() {
                    let chains = kept.get_or_insert_with(|| chains.to_vec());
                    Arc::make_mut(&mut chains[place].0[height]).standing = standing;
                }
            }
        }
        kept
    }

    fn signatures_that_count(
        &self,
        proposed: ProposedAction<'_>,
        link: &Delegation,
    ) -> Vec<Signature> {
        let mut standing = link.standing.clone();
        if !standing.is_empty() {
            let unknown = Addresses::new();
            let addresses = self.signers.get(&link.id).unwrap_or(&unknown);
            self.keep(proposed, &mut standing, addresses);
        }
        standing
    }

    /// Whether a signature counts.
    ///
    /// A signature in the signer's own interest counts if it declares this interest and the tenant
    /// permits it. The decision crate determines for how many people a signature counts.
    fn counts(&self, proposed: ProposedAction<'_>, own_interest: bool, who: Person<'_>) -> bool {
        let lets = self.profile.self_approval;
        match self.barrier(proposed, who) {
            None => lets || !own_interest,
            Some(barrier) => lets && own_interest && barrier.is_own_interest(),
        }
    }

    /// Returns the reality with only the overrides that count when this subject performs this
    /// action, regardless of the requester.
    pub(super) fn lifting_for_anyone(
        &self,
        subject: &PrincipalRef,
        action: &str,
        reality: Arc<Reality>,
    ) -> Arc<Reality> {
        let nobody = Persons::default();
        self.lifting_that_counts(subject, action, &nobody, &reality).unwrap_or(reality)
    }

    /// Returns the reality with only the overrides that count when this subject performs this
    /// action.
    ///
    /// Returns `None` if all overrides count. An override does not count if any of its makers could
    /// not make it now. As at the time of the override, all delegations for the action are
    /// considered, not only the one in use.
    pub fn lifting_that_counts(
        &self,
        subject: &PrincipalRef,
        action: &str,
        requesters: &Persons,
        reality: &Arc<Reality>,
    ) -> Option<Arc<Reality>> {
        if reality.overrides.is_empty() {
            return None;
        }
        let held = self.delegations_for(subject, action);
        let proposed = ProposedAction { subject, chain: &held, requesters };
        let counts = |lifting: &&Arc<Override>| {
            let makers = self.override_makers.get(&lifting.check_id);
            makers.is_some_and(|makers| {
                let mut acts = makers.iter().map(|maker| (maker.own_interest, maker.person()));
                !makers.is_empty() && acts.all(|(own, who)| self.counts(proposed, own, who))
            })
        };
        let overrides: Vec<_> = reality.overrides.iter().filter(counts).cloned().collect();
        let is_less = overrides.len() < reality.overrides.len();
        is_less.then(|| Arc::new(Reality { overrides, ..Reality::clone(reality) }))
    }
}

fn signer<'a>(act: &'a Signature, addresses: &'a Addresses) -> Person<'a> {
    Person { identity: &act.by, email: addresses.get(&act.by).map(String::as_str) }
}
