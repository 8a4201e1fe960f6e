//! Determines who may approve an agent's request, by the tenant's authority.
//!
//! People cannot approve for themselves. These people are excluded: the people who made the request
//! or are behind the API key that made it; the agent; the owners of the agent and of agents in its
//! chain; the delegators in the chain. A person's principals are found by `sub` and by e-mail
//! address. Unverified addresses and deleted principals count: they can only exclude.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use authority_ids::{DelegationRef, PrincipalRef};

use super::{
    persons::{Person, Persons},
    tenant::TenantGraph,
};

/// The action to be approved.
#[derive(Clone, Copy, Debug)]
pub struct ProposedAction<'a> {
    /// The principal that would act.
    pub subject: &'a PrincipalRef,
    /// The delegations that `subject` would act under. The delegations above them count too.
    pub chain: &'a [DelegationRef],
    /// The people who made the request, and the people behind the API keys that made it.
    pub requesters: &'a Persons,
}

/// The reason why a person may not approve. The first in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Barrier {
    /// A delegation of the chain is missing, which makes its delegator unknown, or a record of the
    /// tenant cannot be read.
    Unreadable,
    /// A principal of the person is suspended, revoked, pending or deleted.
    Inactive,
    /// The person is the agent.
    Subject,
    Requester,
    /// The person owns the agent, or an agent in the chain.
    Owner,
    Delegator,
}

impl Barrier {
    /// Whether the tenant's `self_approval` setting lifts this barrier.
    pub fn is_own_interest(self) -> bool {
        matches!(self, Self::Requester | Self::Owner | Self::Delegator)
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Unreadable => "a record that the agent's authority depends on cannot be read",
            Self::Inactive => "a principal of yours is not active",
            Self::Subject => "the agent that would act is you",
            Self::Requester => {
                "you made this request, or created or rotated the API key that made it"
            }
            Self::Owner => "you own the agent, or an agent in its chain of delegations",
            Self::Delegator => "you are a delegator in the agent's chain of delegations",
        })
    }
}

/// The acting principal, the owners of agents and the delegators, each with its barrier.
struct Interested {
    principals: BTreeMap<PrincipalRef, Barrier>,
    readable: bool,
}

impl TenantGraph {
    /// Returns why this person may not approve; `None` if no reason is known.
    pub fn barrier(&self, proposed: ProposedAction<'_>, who: Person<'_>) -> Option<Barrier> {
        let interested = self.interested(proposed);
        let own = self.principals_of_one(who);
        let of_principals = own.iter().filter_map(|id| interested.principals.get(*id).copied());
        [
            (!interested.readable).then_some(Barrier::Unreadable),
            self.is_inactive(who).then_some(Barrier::Inactive),
            self.is_among(who, proposed.requesters).then_some(Barrier::Requester),
        ]
        .into_iter()
        .flatten()
        .chain(of_principals)
        .min()
    }

    /// Whether the tenant has registered people but not a single eligible approver.
    ///
    /// With `self_approves`, a person's own interest is not a barrier. The people are the active
    /// principals of class human that a token can match. Their roles are not known, because
    /// principals have none.
    pub fn nobody_may_approve(&self, proposed: ProposedAction<'_>, self_approves: bool) -> bool {
        let interested = self.interested(proposed);
        let requesters = self.principals_of_all(proposed.requesters);
        let mut known = self.people.active_humans().peekable();
        let kept = |id: &str| {
            let asks = requesters.contains(id).then_some(Barrier::Requester);
            let own = self.with_one_address([id].into_iter());
            let stands = own.iter().filter_map(|id| interested.principals.get(*id).copied());
            let barrier = stands.chain(asks).min();
            barrier.is_some_and(|barrier| !(self_approves && barrier.is_own_interest()))
        };
        known.peek().is_some() && known.all(kept)
    }

    fn interested(&self, proposed: ProposedAction<'_>) -> Interested {
        let mut principals: BTreeMap<PrincipalRef, Barrier> = BTreeMap::new();
        // A principal with several barriers gets the strictest one.
        let mut stands = |id: &PrincipalRef, barrier: Barrier| {
            let known = principals.entry(id.clone()).or_insert(barrier);
            *known = barrier.min(*known);
        };
        stands(proposed.subject, Barrier::Subject);
        let (mut agents, mut readable) = (BTreeSet::from([proposed.subject.clone()]), true);
        for id in proposed.chain {
            let chain = self.delegation(id).map(|leaf| self.chain(leaf)).unwrap_or_default();
            readable &= chain.0.last().is_some_and(|root| root.parent_id.is_none());
            for link in &chain.0 {
                stands(&link.delegator_id, Barrier::Delegator);
                agents.extend([link.delegator_id.clone(), link.delegate_id.clone()]);
            }
        }
        // An owner of an owner also owns the agent.
        let mut open: Vec<PrincipalRef> = agents.iter().cloned().collect();
        while let Some(id) = open.pop() {
            let owner = self.principals.get(&id).and_then(|owned| owned.owner_id.clone());
            let Some(owner) = owner else { continue };
            stands(&owner, Barrier::Owner);
            if agents.insert(owner.clone()) {
                open.push(owner);
            }
        }
        Interested { principals, readable: readable && self.is_readable() }
    }
}
