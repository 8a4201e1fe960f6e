//! Stage 1: may this actor do this at all? The rows of decision.md's table, in its order.
//!
//! Every candidate authority walks the same rows. The first that passes all of them, and the
//! purposes that it is bound to, is used; if none does, the refusal of the one that got furthest
//! stands.

use super::{
    candidate::{Candidate, Source, candidates, is_denied_by},
    case::Case,
    facts::{Delegation, Quarantine},
    levels::{AccessLevel, DelegationState, EffectClass},
    limits,
    pattern::covered,
    purpose,
    reason::Reason,
};

/// The longest chain of delegations.
pub(super) const LONGEST_CHAIN: usize = 16;

type Check = fn(&Case<'_>, &Candidate<'_>) -> Result<(), Reason>;

/// The table. Purposes close it, since a candidate is judged on them too.
const ROWS: [Check; 18] = [
    tenant_is_active,
    subject_is_active,
    nobody_is_stopped,
    nothing_is_quarantined,
    delegation_is_the_subjects,
    chain_is_in_force,
    action_is_covered,
    nothing_denies_it,
    limits::hold,
    jurisdiction_is_supported,
    workspace_is_open,
    resource_is_open,
    project_is_open,
    tool_performs_it,
    context_is_complete,
    purpose::is_known,
    purpose::is_admitted,
    purpose::is_in_scope,
];

/// How many of the rows, from the first, can end what was permitted. The others judge what was
/// asked, and that was answered.
const STANDING: usize = 6;

/// Where a candidate failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub row: usize,
    pub reason: Reason,
}

/// The candidate that counts, and why it does not pass.
pub(super) struct Choice<'a> {
    pub candidate: Candidate<'a>,
    pub refusal: Option<Refusal>,
    /// All that were tried, in order.
    pub tried: Vec<(Candidate<'a>, Option<Refusal>)>,
}

pub(super) fn choose<'a>(case: &Case<'a>) -> Choice<'a> {
    choose_by(case, &ROWS)
}

/// The authority that still stands, whatever it would be found to permit now.
pub(super) fn standing<'a>(case: &Case<'a>) -> Choice<'a> {
    choose_by(case, &ROWS[..STANDING])
}

fn choose_by<'a>(case: &Case<'a>, rows: &[Check]) -> Choice<'a> {
    let mut tried: Vec<(Candidate<'a>, Option<Refusal>)> = Vec::new();
    let mut furthest: Option<(Candidate<'a>, Refusal)> = None;
    for candidate in candidates(case) {
        let refusal = judge(case, &candidate, rows);
        tried.push((candidate, refusal));
        let Some(refusal) = refusal else {
            return Choice { candidate, refusal: None, tried };
        };
        if furthest.is_none_or(|(_, best)| refusal.row > best.row) {
            furthest = Some((candidate, refusal));
        }
    }
    let nothing =
        || (Candidate::nothing(case), Refusal { row: 0, reason: Reason::PermissionMissing });
    let (candidate, refusal) = furthest.unwrap_or_else(nothing);
    Choice { candidate, refusal: Some(refusal), tried }
}

fn judge(case: &Case<'_>, candidate: &Candidate<'_>, rows: &[Check]) -> Option<Refusal> {
    let failed = |(row, check): (usize, &Check)| {
        check(case, candidate).err().map(|reason| Refusal { row, reason })
    };
    rows.iter().enumerate().find_map(failed)
}

fn unless(holds: bool, reason: Reason) -> Result<(), Reason> {
    if holds { Ok(()) } else { Err(reason) }
}

fn tenant_is_active(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let tenant = case.gathered.tenant.as_ref();
    let active = tenant.is_some_and(|t| t.active && t.id == case.request.tenant_id);
    unless(active, Reason::TenantInactive)
}

fn subject_is_active(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let subject = case.subject().ok_or(Reason::SubjectUnknown)?;
    unless(subject.active, Reason::SubjectSuspended)
}

fn nobody_is_stopped(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let concerned = |actor: &str| {
        actor == case.request.subject || candidate.links().iter().any(|l| l.delegate_id == actor)
    };
    let stopped = case.gathered.stop_signals.iter().any(|signal| concerned(&signal.actor_id));
    unless(!stopped, Reason::ActorStopped)
}

fn nothing_is_quarantined(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let concerned = |quarantine: &Quarantine| {
        let links = candidate.links();
        let subject = quarantine.subject_id.as_ref().is_none_or(|id| {
            *id == case.request.subject || links.iter().any(|link| link.delegate_id == *id)
        });
        let action = quarantine.action.as_ref().is_none_or(|p| p.covers(&case.request.action));
        let delegation = quarantine.delegation_id.as_ref();
        let delegation = delegation.is_none_or(|id| links.iter().any(|link| link.id == *id));
        subject && action && delegation
    };
    let quarantined = case.gathered.quarantines.iter().any(|q| concerned(q));
    unless(!quarantined, Reason::CapabilityQuarantined)
}

fn delegation_is_the_subjects(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    match candidate.source {
        Source::Unresolved => Err(Reason::DelegationUnknown),
        Source::Delegation(_) => {
            let own =
                candidate.links().first().is_some_and(|l| l.delegate_id == case.request.subject);
            unless(own, Reason::DelegationMismatch)
        }
        _ => Ok(()),
    }
}

fn chain_is_in_force(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let window = match candidate.source {
        Source::Uses(uses) => uses.row.window,
        Source::ActsIn(row) => row.window,
        _ => return delegations_are_in_force(case, candidate.links()),
    };
    unless(window.begun(case.at), Reason::DelegationNotYetValid)?;
    unless(!window.over(case.at), Reason::DelegationExpired)
}

fn delegations_are_in_force(
    case: &Case<'_>,
    links: &[std::sync::Arc<Delegation>],
) -> Result<(), Reason> {
    for link in links {
        unless(link.window.begun(case.at), Reason::DelegationNotYetValid)?;
        unless(!link.window.over(case.at), Reason::DelegationExpired)?;
        match link.state {
            DelegationState::Active => {}
            DelegationState::Suspended => return Err(Reason::DelegationSuspended),
            DelegationState::Revoked => return Err(Reason::DelegationRevoked),
        }
    }
    for link in links {
        let active = |id: &str| case.principal_is_active(id);
        let both = active(&link.delegator_id) && active(&link.delegate_id);
        unless(both, Reason::DelegatorInactive)?;
    }
    reaches_a_root(links)
}

/// A chain with a gap, or longer than can be made, proves no authority.
fn reaches_a_root(links: &[std::sync::Arc<Delegation>]) -> Result<(), Reason> {
    let joined = links.windows(2).all(|pair| match pair {
        [child, parent] => {
            child.parent_id.as_ref() == Some(&parent.id) && child.delegator_id == parent.delegate_id
        }
        _ => false,
    });
    let rooted = links.last().is_none_or(|root| root.parent_id.is_none());
    unless(joined && rooted && links.len() <= LONGEST_CHAIN, Reason::DelegationUnknown)
}

fn action_is_covered(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let links = candidate.links();
    let covers = links.iter().all(|link| covered(&link.actions, &case.request.action));
    // What an ancestor may no longer pass on binds its children at once.
    let passed_on = links.iter().skip(1).all(|parent| parent.can_delegate);
    let some = !matches!(candidate.source, Source::Nothing | Source::Unresolved);
    unless(some && covers && passed_on, Reason::PermissionMissing)
}

fn nothing_denies_it(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let denied = case.gathered.uses.iter().any(|uses| is_denied_by(case, uses));
    unless(!denied, Reason::CapabilityDenied)
}

fn jurisdiction_is_supported(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let here = case.request.jurisdiction();
    let supports = |list: &[String]| {
        list.is_empty() || here.is_some_and(|here| list.iter().any(|code| code == here))
    };
    let bounds = candidate.bounds().ok_or(Reason::ConstraintExceeded)?;
    let by_authority = bounds.iter().all(|(_, bounds)| supports(&bounds.jurisdictions));
    let by_purpose = case.purpose().is_none_or(|purpose| supports(&purpose.jurisdictions));
    unless(by_authority && by_purpose, Reason::JurisdictionUnsupported)
}

/// Whether the subject acts in the workspace now, and with this action.
fn acts_in(case: &Case<'_>, workspace_id: &str) -> bool {
    case.gathered.acts_in.iter().any(|row| {
        row.workspace_id == workspace_id
            && row.window.holds(case.at)
            && row.allowed_actions.as_ref().is_none_or(|own| covered(own, &case.request.action))
    })
}

fn workspace_is_open(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let Some(id) = &case.request.workspace_id else { return Ok(()) };
    let live = case.gathered.workspace.as_ref().is_some_and(|w| w.id == *id && w.live);
    unless(live && acts_in(case, id), Reason::WorkspaceAccessMissing)
}

/// Whether a grant of sufficient level on the thing reaches the subject, a team that it is in, or
/// a delegator that it acts for.
fn is_granted(case: &Case<'_>, candidate: &Candidate<'_>, thing_id: &str) -> bool {
    let needed = access_needed(candidate);
    let grants = case.gathered.grants.iter();
    let mut enough = grants.filter(|g| g.resource_id == thing_id && g.access_level >= needed);
    enough.any(|grant| {
        let id = &grant.grantee_id;
        if grant.grantee_kind == "team" {
            return case.teams().any(|team| team == id);
        }
        *id == case.request.subject || candidate.links().iter().any(|link| link.delegator_id == *id)
    })
}

fn access_needed(candidate: &Candidate<'_>) -> AccessLevel {
    let by_effect = match candidate.declared.effect_class {
        Some(EffectClass::Informational) => AccessLevel::Read,
        Some(EffectClass::DigitalStateChange) => AccessLevel::Write,
        _ => AccessLevel::Execute,
    };
    candidate.tool.and_then(|tool| tool.access_level).unwrap_or(by_effect)
}

fn resource_is_open(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let Some(id) = &case.request.resource_id else { return Ok(()) };
    let live = case.resource().is_some_and(|resource| resource.live);
    unless(live && is_granted(case, candidate, id), Reason::ResourceAccessMissing)
}

fn project_is_open(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let Some(id) = &case.request.project_id else { return Ok(()) };
    let project = case.gathered.project.as_deref().filter(|p| p.id == *id && p.live);
    let reached = project.is_some_and(|project| {
        let mut reach = project.workspace_id.iter().chain(&project.visible_in_workspaces);
        let named = case.request.workspace_id.as_ref();
        reach.any(|own| named.is_none_or(|named| named == own) && acts_in(case, own))
    });
    unless(reached && is_granted(case, candidate, id), Reason::ProjectAccessMissing)
}

fn tool_performs_it(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    if case.request.tool_id.is_none() {
        return Ok(());
    }
    let performs =
        |tool: &super::facts::Tool| tool.live && covered(&tool.actions, &case.request.action);
    unless(case.tool().is_some_and(performs), Reason::ToolMismatch)
}

fn context_is_complete(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let request = case.request;
    let present = |member: &String| match member.as_str() {
        "resource_id" => request.resource_id.is_some(),
        "workspace_id" => request.workspace_id.is_some(),
        other => request.context.contains_key(other),
    };
    let complete = candidate.tool.is_none_or(|tool| tool.requires.iter().all(present));
    unless(complete, Reason::ContextIncomplete)
}
