//! Checks whether the required approvals are given. `crates/graph/src/approvers.rs` decides who may
//! approve, before the facts reach this crate.

use super::needed::Needed;
use crate::{
    authority::{candidate::Candidate, case::Case},
    facts::records::Approval,
    levels::ApprovalState,
};

/// Returns the cited approval if it counts for this question, or the reason why it does not count.
pub(crate) fn cited_approval<'a>(case: &Case<'a>) -> Option<Result<&'a Approval, &'static str>> {
    let id = case.request.approval_id.as_ref()?;
    let Some(approval) = case.facts.approval.as_ref().filter(|approval| approval.id == *id) else {
        return Some(Err("does not count: there is no such approval in the tenant"));
    };
    Some(if let Some(barrier) = state_barrier(approval.state) {
        Err(barrier)
    } else if case.asked_at >= approval.expires_at {
        Err(EXPIRED)
    } else if approval.same_question {
        Ok(approval)
    } else if approval.same_subject {
        Err("does not count: it was given for another question; every member of the request, its \
             context too, must be as it was when it was held")
    } else {
        Err("does not count: it was given to another subject")
    })
}

const EXPIRED: &str = "does not count: it has expired";

fn state_barrier(state: ApprovalState) -> Option<&'static str> {
    match state {
        ApprovalState::Approved => None,
        ApprovalState::Pending => Some("does not count: it is not approved yet"),
        ApprovalState::Used => Some("does not count: it was used before, and holds once"),
        ApprovalState::Declined => Some("does not count: it was declined"),
        ApprovalState::Expired => Some(EXPIRED),
        ApprovalState::Void => Some("does not count: it is void, withdrawn or no longer permitted"),
    }
}

/// Whether a link of the chain lacks a required standing approval.
pub(crate) fn standing_is_missing(candidate: &Candidate<'_>) -> bool {
    let mut links = candidate.links().iter();
    links.any(|link| link.needs_standing_approval && link.standing.is_empty())
}

/// Whether the delegation's own standing approval is enough.
///
/// Standing approvals of its parents do not count. But if a parent requires a standing approval and
/// lacks it, the delegation's own is not enough.
pub(crate) fn is_met_by_standing(candidate: &Candidate<'_>, needed: Needed) -> bool {
    if needed.is_nobody() {
        return true;
    }
    let own = candidate.links().first().map_or(&[][..], |link| &link.standing);
    !standing_is_missing(candidate) && needed.is_met_by(own)
}
