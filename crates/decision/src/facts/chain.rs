//! Checks whether a chain of delegations is active and complete, and finds the link at fault.

use std::{collections::BTreeSet, fmt, sync::Arc};

use authority_ids::PrincipalRef;
use chrono::{DateTime, Utc};

use super::records::{Chain, Delegation};
use crate::{levels::DelegationState, reason::Reason};

/// The maximum length of a chain of delegations.
pub const LONGEST_CHAIN: usize = 16;

/// Returns the subject and all delegates and delegators in these chains, in order.
pub fn participants<'a>(
    subject: &'a PrincipalRef,
    chains: &'a [Chain],
) -> BTreeSet<&'a PrincipalRef> {
    let links = chains.iter().flat_map(|chain| &chain.0);
    links.flat_map(|link| [&link.delegate_id, &link.delegator_id]).chain([subject]).collect()
}

/// The first problem because of which a chain gives no authority.
#[derive(Clone, Copy, Debug)]
pub struct Broken<'a> {
    pub reason: Reason,
    /// The link with the problem.
    pub link: &'a Delegation,
    /// The delegator or delegate that is not active, if that is the problem.
    pub principal: Option<&'a PrincipalRef>,
    at: DateTime<Utc>,
}

/// Checks that every link is within its window, in state active and between active principals.
///
/// The chain must also reach a root. An empty chain passes.
///
/// # Errors
/// The first problem in this order, from the delegation itself upwards.
pub fn in_force(
    links: &[Arc<Delegation>],
    is_active: impl Fn(&PrincipalRef) -> bool,
    at: DateTime<Utc>,
) -> Result<(), Broken<'_>> {
    let broken = |link, reason| Err(Broken { reason, link, principal: None, at });
    for link in links {
        if !link.window.has_started(at) {
            return broken(link, Reason::DelegationNotYetValid);
        }
        if link.window.over(at) {
            return broken(link, Reason::DelegationExpired);
        }
        match link.state {
            DelegationState::Active => {}
            DelegationState::Suspended => return broken(link, Reason::DelegationSuspended),
            DelegationState::Revoked => return broken(link, Reason::DelegationRevoked),
        }
    }
    for link in links {
        let both = [&link.delegator_id, &link.delegate_id];
        if let Some(principal) = both.into_iter().find(|id| !is_active(id)) {
            let reason = Reason::DelegatorInactive;
            return Err(Broken { reason, link, principal: Some(principal), at });
        }
    }
    match links.last() {
        Some(last) if !reaches_a_root(links) => broken(last, Reason::DelegationUnknown),
        _ => Ok(()),
    }
}

/// Whether the chain is complete. A chain with a gap, or over the length limit, gives no authority.
fn reaches_a_root(links: &[Arc<Delegation>]) -> bool {
    let joined = links.windows(2).all(|pair| match pair {
        [child, parent] => {
            child.parent_id.as_ref() == Some(&parent.id) && child.delegator_id == parent.delegate_id
        }
        _ => false,
    });
    let rooted = links.last().is_none_or(|root| root.parent_id.is_none());
    joined && rooted && links.len() <= LONGEST_CHAIN
}

/// Describes the link and its problem.
impl fmt::Display for Broken<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delegation { id, window, state, .. } = self.link;
        match (self.reason, self.principal, window.problem(self.at)) {
            (_, Some(principal), _) => write!(to, "{principal} of {id} is not active"),
            (Reason::DelegationUnknown, ..) => write!(to, "the chain of {id} reaches no root"),
            (Reason::DelegationNotYetValid | Reason::DelegationExpired, _, Some(problem)) => {
                write!(to, "{id} {problem}")
            }
            _ => write!(to, "{id} is {state}"),
        }
    }
}
