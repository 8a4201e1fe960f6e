//! What people may give, bring back into force, or lift.

use std::{collections::BTreeSet, sync::Arc};

use super::{Kind, Remedy, Search, distinct, remedy};
use crate::decision::{
    facts::{ActsIn, Constraints, Delegation, Gathered, Grant, Used, Uses, UsesRow},
    levels::{AccessLevel, DelegationState},
    moment::{self, Window},
    pattern::{Pattern, covered},
    reason::Reason,
};

/// Access to what the request names, at the least level that is enough; or the action itself.
pub(super) fn grant(search: &Search<'_>) -> Option<Remedy> {
    let request = &search.request;
    let on = |id: &Option<String>| id.as_deref().and_then(|id| access(search, id));
    let reached = search
        .gathered()
        .project
        .iter()
        .flat_map(|project| project.workspace_id.iter().chain(&project.visible_in_workspaces));
    let workspaces = distinct(request.workspace_id.iter().chain(reached), None);
    on(&request.resource_id)
        .or_else(|| workspaces.into_iter().find_map(|id| membership(search, id)))
        .or_else(|| on(&request.project_id))
        .or_else(|| action(search))
}

fn access(search: &Search<'_>, thing_id: &str) -> Option<Remedy> {
    let subject = &search.request.subject;
    AccessLevel::ALL.iter().find_map(|level| {
        let verdict = search.find(|gathered| {
            gathered.grants.push(Arc::new(Grant {
                id: String::new(),
                resource_id: thing_id.to_owned(),
                grantee_id: subject.clone(),
                grantee_kind: "principal".to_owned(),
                access_level: *level,
            }));
        })?;
        let sentence = format!("grant `{subject}` the access level {level} on `{thing_id}`");
        let found = remedy(Kind::Grant, sentence, &verdict);
        let member = Some("granted_access_to".to_owned());
        let (value, id) = (Some(level.word().to_owned()), Some(thing_id.to_owned()));
        Some(Remedy { member, value, id, ..found })
    })
}

fn membership(search: &Search<'_>, workspace_id: &str) -> Option<Remedy> {
    let subject = &search.request.subject;
    let verdict = search.find(|gathered| {
        gathered.acts_in.push(Arc::new(ActsIn {
            id: String::new(),
            workspace_id: workspace_id.to_owned(),
            window: Window::default(),
            allowed_actions: None,
        }));
    })?;
    let sentence = format!("let `{subject}` act in the workspace `{workspace_id}`");
    let found = remedy(Kind::Grant, sentence, &verdict);
    let (member, id) = (Some("acts_in".to_owned()), Some(workspace_id.to_owned()));
    Some(Remedy { member, id, ..found })
}

/// Only where nothing covers the action: a new grant would also outdo a delegation that has expired,
/// and that one should then be named.
fn action(search: &Search<'_>) -> Option<Remedy> {
    if search.reason != Reason::PermissionMissing {
        return None;
    }
    let (subject, action) = (&search.request.subject, &search.request.action);
    let exact = Pattern::Exact(action.clone());
    let constraints = Constraints::Bounds(Box::default());
    let (id, window) = (String::new(), Window::default());
    let row = Arc::new(UsesRow { id, allowed: true, window, constraints });
    let used = Used::Action(exact.clone());
    let found = |sentence: String, verdict: &_| Remedy {
        value: Some(action.clone()),
        ..remedy(Kind::Grant, sentence, verdict)
    };
    if let Some(verdict) = search.find(|gathered| gathered.uses.push(Uses { row, used })) {
        let sentence =
            format!("give `{subject}` the action `{action}`, by a delegation or a uses row");
        return Some(Remedy { member: Some("action".to_owned()), ..found(sentence, &verdict) });
    }
    let lacking = links(search).into_iter().filter(|link| !covered(&link.actions, action));
    lacking.into_iter().find_map(|link| {
        let add = |link: &mut Delegation| link.actions.push(exact.clone());
        let verdict = search.find(|gathered| edit(gathered, &link.id, add))?;
        let sentence = format!("let the delegation `{}` cover the action `{action}`", link.id);
        let (member, id) = (Some("actions".to_owned()), Some(link.id.clone()));
        Some(Remedy { member, id, ..found(sentence, &verdict) })
    })
}

/// A link of a chain, or a row, that is not in force.
pub(super) fn link(search: &Search<'_>) -> Option<Remedy> {
    let at = search.at;
    let out = |window: Window, state| !window.holds(at) || state != DelegationState::Active;
    let broken = links(search).into_iter().filter(|link| out(link.window, link.state));
    let of_chains = broken.into_iter().find_map(|link| {
        let verdict = search.find(|gathered| {
            edit(gathered, &link.id, |link| {
                link.state = DelegationState::Active;
                link.window = Window::default();
            });
        })?;
        let (member, problem) = problem(link.window, link.state, search);
        let sentence = format!("bring the delegation `{}` into force: it {problem}", link.id);
        let found = remedy(Kind::Link, sentence, &verdict);
        Some(Remedy { member: Some(member.to_owned()), id: Some(link.id.clone()), ..found })
    });
    of_chains.or_else(|| row(search))
}

/// A `uses` or acts-in row whose window is not open.
fn row(search: &Search<'_>) -> Option<Remedy> {
    let gathered = search.gathered();
    let closed = |window: &Window| !window.holds(search.at);
    let uses = gathered.uses.iter().map(|uses| &uses.row).filter(|row| row.allowed);
    let uses = uses.map(|row| ("uses", row.id.as_str(), row.window));
    let acts_in = gathered.acts_in.iter().map(|row| ("acts_in", row.id.as_str(), row.window));
    uses.chain(acts_in).filter(|(.., window)| closed(window)).find_map(|(kind, id, window)| {
        let verdict = search.find(|gathered| {
            for uses in gathered.uses.iter_mut().filter(|u| kind == "uses" && u.row.id == id) {
                Arc::make_mut(&mut uses.row).window = Window::default();
            }
            for row in gathered.acts_in.iter_mut().filter(|r| kind == "acts_in" && r.id == id) {
                Arc::make_mut(row).window = Window::default();
            }
        })?;
        let (_, problem) = problem(window, DelegationState::Active, search);
        let sentence = format!("bring the {kind} row `{id}` into force: it {problem}");
        let found = remedy(Kind::Link, sentence, &verdict);
        Some(Remedy { member: Some(kind.to_owned()), id: Some(id.to_owned()), ..found })
    })
}

/// The member that keeps a link out of force, and how.
fn problem(window: Window, state: DelegationState, search: &Search<'_>) -> (&'static str, String) {
    let at = |moment: Option<_>| moment.map(moment::text).unwrap_or_default();
    if window.over(search.at) {
        return ("expires_at", format!("expired at {}", at(window.until)));
    }
    if !window.begun(search.at) {
        return ("not_before", format!("begins at {}", at(window.from)));
    }
    ("state", format!("is {state}"))
}

/// The subject, or somebody of a chain, made active.
pub(super) fn principal(search: &Search<'_>) -> Option<Remedy> {
    let gathered = search.gathered();
    let known = gathered.subject.iter().chain(&gathered.principals);
    let inactive = known.filter(|principal| !principal.active).map(|principal| &principal.id);
    distinct(inactive, None).into_iter().find_map(|id| {
        let verdict = search.find(|gathered| {
            let known = gathered.subject.iter_mut().chain(&mut gathered.principals);
            for principal in known.filter(|principal| principal.id == id) {
                Arc::make_mut(principal).active = true;
            }
        })?;
        let sentence = format!("activate the principal `{id}`");
        let found = remedy(Kind::Principal, sentence, &verdict);
        let (member, value) = (Some("state".to_owned()), Some("active".to_owned()));
        Some(Remedy { member, value, id: Some(id.to_owned()), ..found })
    })
}

pub(super) fn stop(search: &Search<'_>) -> Option<Remedy> {
    search.gathered().stop_signals.iter().find_map(|signal| {
        let other = |one: &Arc<_>| one != signal;
        let verdict = search.find(|gathered| gathered.stop_signals.retain(other))?;
        let sentence = format!("lift the stop signal `{}` on `{}`", signal.id, signal.actor_id);
        Some(Remedy { id: Some(signal.id.clone()), ..remedy(Kind::Stop, sentence, &verdict) })
    })
}

pub(super) fn quarantine(search: &Search<'_>) -> Option<Remedy> {
    search.gathered().quarantines.iter().find_map(|quarantine| {
        let other = |one: &Arc<_>| one != quarantine;
        let verdict = search.find(|gathered| gathered.quarantines.retain(other))?;
        let sentence = format!("release the quarantine `{}`", quarantine.id);
        let found = remedy(Kind::Quarantine, sentence, &verdict);
        Some(Remedy { id: Some(quarantine.id.clone()), ..found })
    })
}

/// A `uses` row with allowed = 0.
pub(super) fn denial(search: &Search<'_>) -> Option<Remedy> {
    let denying = search.gathered().uses.iter().filter(|uses| !uses.row.allowed);
    denying.into_iter().find_map(|denial| {
        let other = |one: &Uses| one.row != denial.row;
        let verdict = search.find(|gathered| gathered.uses.retain(other))?;
        let sentence = format!("take back the denial `{}`", denial.row.id);
        let found = remedy(Kind::Denial, sentence, &verdict);
        let (member, id) = (Some("uses".to_owned()), Some(denial.row.id.clone()));
        Some(Remedy { member, id, ..found })
    })
}

/// Every link of every chain, once.
fn links<'s>(search: &'s Search<'_>) -> Vec<&'s Delegation> {
    let mut seen = BTreeSet::new();
    let links = search.gathered().delegations.iter().flat_map(|chain| &chain.0);
    links.filter(|link| seen.insert(link.id.as_str())).map(Arc::as_ref).collect()
}

/// Changes a link wherever it stands.
fn edit(gathered: &mut Gathered, id: &str, change: impl Fn(&mut Delegation)) {
    let links = gathered.delegations.iter_mut().flat_map(|chain| &mut chain.0);
    links.filter(|link| link.id == id).for_each(|link| change(Arc::make_mut(link)));
}
