//! Changes that people make: granting authority, making it active again, lifting prohibitions.

use std::{collections::BTreeSet, sync::Arc};

use authority_ids::EntityRef;

use super::{
    apply::{ACCESS, ACTION, ACTIONS, ACTS_IN, USES},
    change::{Change, Kind, change, distinct},
    search::{Search, State},
};
use crate::{
    facts::records::Delegation,
    levels::{AccessLevel, DelegationState},
    moment::Window,
    pattern::covered,
    reason::Reason,
};

/// Proposes access to the named objects at each level, lowest first, or the action itself.
pub(super) fn grant(_: &Search<'_>, state: &State) -> Vec<Change> {
    let request = &state.request;
    let on = |id: &Option<EntityRef>| id.as_ref().map(|id| access(state, id)).unwrap_or_default();
    let reached = state
        .gathered()
        .project
        .iter()
        .flat_map(|project| project.workspace_id.iter().chain(&project.visible_in_workspaces));
    let workspaces = distinct(request.workspace_id.iter().chain(reached), None).into_iter();
    let mut found = on(&request.resource_id);
    found.extend(workspaces.map(|id| membership(state, id)));
    found.extend(on(&request.project_id));
    found.extend(action(state));
    found
}

fn access(state: &State, thing_id: &EntityRef) -> Vec<Change> {
    let subject = &state.request.subject;
    let levels = AccessLevel::ALL.iter().map(|level| {
        let sentence = format!("grant `{subject}` the access level {level} on `{thing_id}`");
        let (value, id) = (Some(level.word().to_owned()), Some(thing_id.to_string()));
        Change { member: Some(ACCESS.to_owned()), value, id, ..change(Kind::Grant, sentence) }
    });
    levels.collect()
}

fn membership(state: &State, workspace_id: &EntityRef) -> Change {
    let subject = &state.request.subject;
    let sentence = format!("let `{subject}` act in the workspace `{workspace_id}`");
    let (member, id) = (Some(ACTS_IN.to_owned()), Some(workspace_id.to_string()));
    Change { member, id, ..change(Kind::Grant, sentence) }
}

/// Proposes a grant of the action, only if no authority covers it.
///
/// A new grant would also help in place of an expired delegation, but then the remedy should name
/// the expired delegation.
fn action(state: &State) -> Vec<Change> {
    if state.reason != Reason::PermissionMissing {
        return Vec::new();
    }
    let (subject, action) = (&state.request.subject, &state.request.action);
    let value = || Some(action.clone());
    let sentence = format!("give `{subject}` the action `{action}`, by a delegation or a uses row");
    let named = change(Kind::Grant, sentence);
    let mut found = vec![Change { member: Some(ACTION.to_owned()), value: value(), ..named }];
    let lacking = links(state).into_iter().filter(|link| !covered(&link.actions, action));
    found.extend(lacking.map(|link| {
        let sentence = format!("let the delegation `{}` cover the action `{action}`", link.id);
        let (member, id) = (Some(ACTIONS.to_owned()), Some(link.id.to_string()));
        Change { member, value: value(), id, ..change(Kind::Grant, sentence) }
    }));
    found
}

/// Proposes to make a link of a chain, or a row, active.
pub(super) fn link(search: &Search<'_>, state: &State) -> Vec<Change> {
    let at = search.at;
    let out = |link: &&Delegation| !link.window.holds(at) || link.state != DelegationState::Active;
    let broken = links(state).into_iter().filter(out).map(|link| {
        let (member, problem) = problem(link.window, link.state, search);
        let sentence = match link.state {
            // A revoked link cannot be reinstated.
            DelegationState::Revoked => {
                format!("delegate again in place of `{}`, which is revoked", link.id)
            }
            _ => format!("bring the delegation `{}` into force: it {problem}", link.id),
        };
        let (member, id) = (Some(member.to_owned()), Some(link.id.to_string()));
        Change { member, id, ..change(Kind::Link, sentence) }
    });
    broken.chain(rows(search, state)).collect()
}

/// Proposes to activate the `uses` and acts-in rows that are outside their windows.
fn rows(search: &Search<'_>, state: &State) -> Vec<Change> {
    let gathered = state.gathered();
    let uses = gathered.uses.iter().map(|uses| &uses.row).filter(|row| row.allowed);
    let uses = uses.map(|row| (USES, row.id.as_str(), row.window));
    let acts_in = gathered.acts_in.iter().map(|row| (ACTS_IN, row.id.as_str(), row.window));
    let closed = uses.chain(acts_in).filter(|(.., window)| !window.holds(search.at));
    let opened = closed.map(|(kind, id, window)| {
        let (_, problem) = problem(window, DelegationState::Active, search);
        let sentence = format!("bring the {kind} row `{id}` into force: it {problem}");
        let (member, id) = (Some(kind.to_owned()), Some(id.to_owned()));
        Change { member, id, ..change(Kind::Link, sentence) }
    });
    opened.collect()
}

/// Returns the field because of which a link is not active, and the problem.
fn problem(window: Window, state: DelegationState, search: &Search<'_>) -> (&'static str, String) {
    let member = if window.has_started(search.at) { "expires_at" } else { "not_before" };
    let state = || ("state", format!("is {state}"));
    window.problem(search.at).map_or_else(state, |problem| (member, problem))
}

/// Proposes to activate the subject, or a principal of a chain.
pub(super) fn principal(_: &Search<'_>, state: &State) -> Vec<Change> {
    let gathered = state.gathered();
    let known = gathered.subject.iter().chain(&gathered.principals);
    let inactive = known.filter(|principal| !principal.active).map(|principal| &principal.id);
    let activated = distinct(inactive, None).into_iter().map(|id| {
        let named = change(Kind::Principal, format!("activate the principal `{id}`"));
        let (member, value) = (Some("state".to_owned()), Some("active".to_owned()));
        Change { member, value, id: Some(id.to_string()), ..named }
    });
    activated.collect()
}

pub(super) fn stop(_: &Search<'_>, state: &State) -> Vec<Change> {
    let lifted = state.gathered().stop_signals.iter().map(|signal| {
        let sentence = format!("lift the stop signal `{}` on `{}`", signal.id, signal.actor_id);
        Change { id: Some(signal.id.to_string()), ..change(Kind::Stop, sentence) }
    });
    lifted.collect()
}

pub(super) fn quarantine(_: &Search<'_>, state: &State) -> Vec<Change> {
    let released = state.gathered().quarantines.iter().map(|quarantine| {
        let named = change(Kind::Quarantine, format!("release the quarantine `{}`", quarantine.id));
        Change { id: Some(quarantine.id.to_string()), ..named }
    });
    released.collect()
}

/// Proposes to remove the `uses` rows with allowed = 0.
pub(super) fn denial(_: &Search<'_>, state: &State) -> Vec<Change> {
    let gathered = state.gathered();
    let own = gathered.uses.iter().filter(|uses| !uses.row.allowed);
    let of_chains = gathered.chain_denials.iter().map(|row| &row.denial);
    let taken_back = own.chain(of_chains).map(|denial| {
        let named = change(Kind::Denial, format!("remove the denial `{}`", denial.row.id));
        let (member, id) = (Some(USES.to_owned()), Some(denial.row.id.to_string()));
        Change { member, id, ..named }
    });
    taken_back.collect()
}

/// Returns the distinct links of all chains.
fn links(state: &State) -> Vec<&Delegation> {
    let mut seen = BTreeSet::new();
    let links = state.gathered().delegations.iter().flat_map(|chain| &chain.0);
    links.filter(|link| seen.insert(link.id.as_str())).map(Arc::as_ref).collect()
}
