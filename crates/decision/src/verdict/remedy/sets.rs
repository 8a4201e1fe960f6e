//! Finds two or three changes that help together if no single change does.
//!
//! Applies each change that might belong to such a set, decides the request again, and searches for
//! one more change. The most likely changes come first: changes after which the request passes more
//! rows of the table of checks, then changes that relate to the reason for the refusal. Only the
//! [`KEPT`] most likely changes are followed.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{
    change::{Change, Kind, Remedy},
    search::{Search, State},
    steps::{MOST_TRIES, STEPS, SearchStep, one_more},
};
use crate::reason::Reason;

/// The maximum number of changes to try for sets of two, and again for sets of three.
pub(super) const MOST_FOR_SETS: u32 = 768;
/// The maximum number of partial sets to follow, for each size.
const KEPT: usize = 24;
/// The size of the largest set to search.
const LARGEST: usize = 3;

pub(super) fn smallest(search: &Search<'_>, asked: &State) -> Option<Remedy> {
    let mut beginnings = Vec::new();
    for size in 1..LARGEST {
        search.left.set(MOST_FOR_SETS);
        let from: &[State] = if size == 1 { std::slice::from_ref(asked) } else { &beginnings };
        beginnings = longer(search, from);
        if let Some(found) = beginnings.iter().find_map(|state| one_more(search, state)) {
            return Some(without_idle(search, asked, found));
        }
    }
    None
}

/// Removes unnecessary changes from a set. A set can contain them, because a step may propose some
/// changes only after another change.
fn without_idle(search: &Search<'_>, asked: &State, found: Remedy) -> Remedy {
    search.left.set(MOST_FOR_SETS);
    search.step.set(MOST_FOR_SETS);
    let fewer = (0..found.changes.len()).find_map(|place| {
        let mut changes = found.changes.clone();
        changes.remove(place);
        let mut changes = changes.into_iter();
        let first = search.after(asked, &changes.next()?)?;
        let last = changes.try_fold(first, |state, change| search.after(&state, &change))?;
        last.helps().then(|| last.remedy())
    });
    match fewer {
        Some(fewer) => without_idle(search, asked, fewer),
        None => found,
    }
}

/// Extends each partial set by one more change. The most likely come first.
fn longer(search: &Search<'_>, beginnings: &[State]) -> Vec<State> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for state in beginnings {
        for change in proposed(search, state) {
            let is_new = !state.changes.iter().any(|made| is_undone(made, &change));
            let relevant = is_relevant(state.reason, change.kind);
            let mut names: Vec<String> = state.changes.iter().map(name).collect();
            names.push(name(&change));
            names.sort_unstable();
            if !is_new || !seen.insert(names) {
                continue;
            }
            // Half of the tries are reserved for the last change of each set.
            if search.left.get() <= MOST_FOR_SETS / 2 {
                break;
            }
            search.step.set(1);
            if let Some(next) = search.after(state, &change) {
                let row = next.row(search.at);
                found.push(((Reverse(row), Reverse(relevant)), next));
            }
        }
    }
    found.sort_by_key(|(likely, _)| *likely);
    found.into_iter().take(KEPT).map(|(_, state)| state).collect()
}

/// Returns changes that might belong to a set.
///
/// The largest amount and a wait depend on all other changes. They come last and are not included.
fn proposed(search: &Search<'_>, state: &State) -> Vec<Change> {
    let each = STEPS.iter().filter_map(|step| match step {
        SearchStep::Propose(propose) => Some(propose(search, state)),
        SearchStep::Last(_) => None,
    });
    each.flat_map(|changes| changes.into_iter().take(MOST_TRIES as usize)).collect()
}

/// Whether a change would only replace an earlier change.
fn is_undone(made: &Change, change: &Change) -> bool {
    let same = made.kind == change.kind && made.member == change.member;
    same && (change.kind.is_said() || made.id == change.id)
}

fn name(change: &Change) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (member, value, id) = (text(&change.member), text(&change.value), text(&change.id));
    format!("{}\n{member}\n{value}\n{id}", change.kind)
}

/// Whether changes of this kind relate to this reason.
fn is_relevant(reason: Reason, kind: Kind) -> bool {
    match kind {
        Kind::Purpose => matches!(
            reason,
            Reason::PurposeUnknown
                | Reason::PurposeNotAdmitted
                | Reason::PurposeOutOfScope
                | Reason::PurposeRequired
        ),
        Kind::Jurisdiction => {
            matches!(reason, Reason::JurisdictionUnsupported | Reason::PurposeNotAdmitted)
        }
        Kind::Delegation => {
            matches!(reason, Reason::DelegationUnknown | Reason::DelegationMismatch)
        }
        Kind::Grant => matches!(
            reason,
            Reason::PermissionMissing
                | Reason::WorkspaceAccessMissing
                | Reason::ResourceAccessMissing
                | Reason::ProjectAccessMissing
        ),
        Kind::Link => matches!(
            reason,
            Reason::DelegationExpired
                | Reason::DelegationNotYetValid
                | Reason::DelegationRevoked
                | Reason::DelegationSuspended
        ),
        Kind::Principal => matches!(reason, Reason::SubjectSuspended | Reason::DelegatorInactive),
        Kind::Wait => reason == Reason::ConstraintExceeded,
        Kind::Amount | Kind::Context => {
            use Reason::{ConstraintExceeded, ContextIncomplete, ContextInvalid};
            matches!(reason, ConstraintExceeded | ContextIncomplete | ContextInvalid)
        }
        Kind::Declaration => reason == Reason::RiskExceedsDelegation,
        Kind::Stop => reason == Reason::ActorStopped,
        Kind::Quarantine => reason == Reason::CapabilityQuarantined,
        Kind::Denial => reason == Reason::CapabilityDenied,
    }
}
