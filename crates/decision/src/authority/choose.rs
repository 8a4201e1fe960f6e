//! Stage 1: is this actor allowed to perform this action? Checks the rows of the table in
//! docs/reference/decision.md, in order.
//!
//! Every candidate authority goes through the same rows. The first candidate that passes all of
//! them, including its purposes, is used. If none passes, the refusal of the candidate that got
//! furthest is returned.

use authority_ids::{EntityRef, PrincipalRef};
use chrono::{DateTime, Utc};

use super::{
    candidate::{Candidate, Source, candidates, is_denied_by},
    case::Case,
    input_check, limits, purpose,
    used::AuthorityUsed,
};
use crate::{
    facts::{
        chain,
        records::{ActsIn, Grant, Project, Quarantine, Resource, Uses},
        terms::Terms,
    },
    levels::AccessLevel,
    pattern::covered,
    reason::Reason,
    request::jurisdiction,
};

type Check = fn(&Case<'_>, &Candidate<'_>) -> Result<(), Reason>;

/// The table. Purposes are its last rows, because they also depend on the candidate.
const CHECKS: [Check; 20] = [
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
    definition_is_pinned,
    context_is_complete,
    input_check::is_valid,
    purpose::is_known,
    purpose::is_admitted,
    purpose::is_in_scope,
];

/// The index of the input check.
pub(crate) const INPUT: usize = 16;

/// The checks that can end a permission. The other rows concern the request, which is already
/// decided.
const STANDING: [Check; 11] = [
    tenant_is_active,
    subject_is_active,
    nobody_is_stopped,
    nothing_is_quarantined,
    delegation_is_the_subjects,
    chain_is_in_force,
    // This check precedes `action_is_covered`. If a row was changed from allowed to denied, both
    // checks fail, and the reason must be the denial.
    nothing_denies_it,
    action_is_covered,
    workspace_is_open,
    project_is_reached,
    definition_is_pinned,
];

/// The check that a candidate failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedCheck {
    pub row: usize,
    pub reason: Reason,
}

/// The chosen candidate, with the check that it failed, if any.
pub(crate) struct Choice<'a> {
    pub candidate: Candidate<'a>,
    pub refusal: Option<FailedCheck>,
    /// All tried candidates, in order, each with the check that it failed, if any.
    pub tried: Vec<(Candidate<'a>, Option<FailedCheck>)>,
}

pub(crate) fn choose<'a>(case: &Case<'a>) -> Choice<'a> {
    let mut tried: Vec<(Candidate<'a>, Option<FailedCheck>)> = Vec::new();
    let mut furthest: Option<(Candidate<'a>, FailedCheck)> = None;
    // The input is checked once for all authorities with the same terms.
    let mut invalid: Option<Terms<'a>> = None;
    for candidate in candidates(case) {
        let refusal = if invalid.is_some_and(|terms| terms.is_same(candidate.terms)) {
            let before = judge(case, &candidate, CHECKS.get(..INPUT).unwrap_or(&CHECKS));
            before.or(Some(FailedCheck { row: INPUT, reason: Reason::ContextInvalid }))
        } else {
            judge(case, &candidate, &CHECKS)
        };
        if refusal.is_some_and(|refusal| refusal.row == INPUT) {
            invalid = Some(candidate.terms);
        }
        tried.push((candidate, refusal));
        let Some(refusal) = refusal else {
            return Choice { candidate, refusal: None, tried };
        };
        if furthest.is_none_or(|(_, best)| refusal.row > best.row) {
            furthest = Some((candidate, refusal));
        }
    }
    let nothing =
        || (Candidate::nothing(case), FailedCheck { row: 0, reason: Reason::PermissionMissing });
    let (candidate, refusal) = furthest.unwrap_or_else(nothing);
    Choice { candidate, refusal: Some(refusal), tried }
}

/// Returns the authority that was used, and the reason if it has ended.
///
/// The authority's current bounds do not matter. An authority that was deleted or changed to
/// something else counts as absent.
pub(crate) fn standing<'a>(
    case: &Case<'a>,
    used: &AuthorityUsed,
) -> (Candidate<'a>, Option<FailedCheck>) {
    let candidate = named(case, used);
    (candidate, judge(case, &candidate, &STANDING))
}

/// Judges the used authority as the only candidate.
///
/// Other authorities that would permit the request now are ignored: the permission's decision
/// doesn't refer to them.
pub(crate) fn choose_again<'a>(case: &Case<'a>, used: &AuthorityUsed) -> Choice<'a> {
    let candidate = named(case, used);
    let refusal = judge(case, &candidate, &CHECKS);
    Choice { candidate, refusal, tried: vec![(candidate, refusal)] }
}

fn named<'a>(case: &Case<'a>, used: &AuthorityUsed) -> Candidate<'a> {
    let id = case.successor_of(&used.id);
    let is = |candidate: &Candidate<'_>| candidate.name() == Some((used.kind, id));
    let found = candidates(case).into_iter().find(is);
    found.unwrap_or_else(|| Candidate::absent(case, used.kind))
}

/// Returns when the subject's access to the request's workspace or project expires.
///
/// This is the end of the membership of the named workspace. If only a project is named, it is the
/// latest end of the memberships of the workspaces that give access to the project.
pub(crate) fn membership_until(case: &Case<'_>) -> Option<DateTime<Utc>> {
    let named = case.request.workspace_id.as_ref();
    let reaching = project_named(case).filter(|_| named.is_none());
    let reaching = reaching.into_iter().flat_map(reach);
    let rows = named.into_iter().chain(reaching).flat_map(|id| memberships(case, id));
    // A membership without an end outlasts all other memberships.
    rows.map(|row| row.window.until).max_by_key(|end| (end.is_none(), *end)).flatten()
}

/// Returns when the next denial of the action takes effect.
pub(crate) fn denied_from(case: &Case<'_>, candidate: &Candidate<'_>) -> Option<DateTime<Utc>> {
    let starts = denials(case, candidate).filter_map(|uses| uses.row.window.from);
    starts.filter(|from| case.at < *from).min()
}

/// Returns the rows with allowed = 0 of the subject and of all participants in the chain.
fn denials<'a>(case: &Case<'a>, candidate: &Candidate<'a>) -> impl Iterator<Item = &'a Uses> {
    let (case, candidate) = (*case, *candidate);
    let of_chain = case.gathered.chain_denials.iter();
    let of_chain = of_chain.filter(move |row| takes_part(&case, &candidate, &row.principal_id));
    let all = case.gathered.uses.iter().chain(of_chain.map(|row| &row.denial));
    all.filter(|uses| !uses.row.allowed)
}

fn judge(case: &Case<'_>, candidate: &Candidate<'_>, rows: &[Check]) -> Option<FailedCheck> {
    let failed = |(row, check): (usize, &Check)| {
        check(case, candidate).err().map(|reason| FailedCheck { row, reason })
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
    let mut signals = case.gathered.stop_signals.iter();
    let stopped = signals.any(|signal| takes_part(case, candidate, &signal.actor_id));
    unless(!stopped, Reason::ActorStopped)
}

/// Whether the principal is the subject or a participant in the chain: a delegate, a delegator, the
/// root.
pub(crate) fn takes_part(case: &Case<'_>, candidate: &Candidate<'_>, id: &PrincipalRef) -> bool {
    let mut links = candidate.links().iter();
    *id == case.request.subject || links.any(|l| l.delegate_id == *id || l.delegator_id == *id)
}

fn nothing_is_quarantined(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let concerned = |quarantine: &Quarantine| {
        let links = candidate.links();
        let subject = quarantine.subject_id.as_ref();
        let subject = subject.is_none_or(|id| takes_part(case, candidate, id));
        let action = quarantine.action.as_ref().is_none_or(|p| p.covers(&case.request.action));
        let delegation = quarantine.delegation_id.as_ref();
        let delegation = delegation.is_none_or(|id| links.iter().any(|link| *id == *link.line()));
        subject && action && delegation
    };
    let quarantined = case.gathered.quarantines.iter().any(|q| concerned(q));
    unless(!quarantined, Reason::CapabilityQuarantined)
}

/// Checks that the delegation was given to the subject, and that the principal in `on_behalf_of` is
/// a delegator in its chain. Other authorities have no delegator.
fn delegation_is_the_subjects(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let links = candidate.links();
    let own = match candidate.source {
        Source::Unresolved => return Err(Reason::DelegationUnknown),
        Source::Delegation(_) => {
            links.first().is_some_and(|link| link.delegate_id == case.request.subject)
        }
        Source::Uses(_) | Source::ActsIn(_) | Source::Nothing => true,
    };
    let delegates = |id: &PrincipalRef| links.iter().any(|link| link.delegator_id == *id);
    let delegated = case.request.on_behalf_of.as_ref().is_none_or(delegates);
    unless(own && delegated, Reason::DelegationMismatch)
}

fn chain_is_in_force(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let window = match candidate.source {
        Source::Uses(uses) => uses.row.window,
        Source::ActsIn(row) => row.window,
        _ => {
            let active = |id: &PrincipalRef| case.principal_is_active(id);
            let found = chain::in_force(candidate.links(), active, case.at);
            return found.map_err(|broken| broken.reason);
        }
    };
    unless(window.has_started(case.at), Reason::DelegationNotYetValid)?;
    unless(!window.over(case.at), Reason::DelegationExpired)
}

fn action_is_covered(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let links = candidate.links();
    let covers = links.iter().all(|link| covered(&link.actions, &case.request.action));
    // If a delegation no longer allows delegating, its child delegations end immediately.
    let passed_on = links.iter().skip(1).all(|parent| parent.can_delegate);
    let some = !matches!(candidate.source, Source::Nothing | Source::Unresolved);
    unless(some && covers && passed_on, Reason::PermissionMissing)
}

fn nothing_denies_it(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let denied = denials(case, candidate).any(|uses| is_denied_by(case, uses));
    unless(!denied, Reason::CapabilityDenied)
}

fn jurisdiction_is_supported(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let bounds = candidate.bounds().ok_or(Reason::ConstraintExceeded)?;
    let by_authority = bounds.iter().all(|(_, bounds)| supports(case, &bounds.jurisdictions));
    let by_purpose = case.purpose().is_none_or(|purpose| supports(case, &purpose.jurisdictions));
    // An agent could send `UK` to evade the rules for `GB`.
    let is_place = case.request.jurisdiction().is_none_or(jurisdiction::is_known);
    unless(is_place && by_authority && by_purpose, Reason::JurisdictionUnsupported)
}

/// Whether the request's jurisdiction is within the list. An empty list supports all jurisdictions.
pub(crate) fn supports(case: &Case<'_>, list: &[String]) -> bool {
    let here = case.request.jurisdiction();
    let within = |here: &str| list.iter().any(|code| jurisdiction::covers(code, here));
    list.is_empty() || here.is_some_and(within)
}

/// Whether the subject may perform the action in the workspace at the decision's time.
fn acts_in(case: &Case<'_>, workspace_id: &EntityRef) -> bool {
    memberships(case, workspace_id).next().is_some()
}

/// Returns the memberships by which the subject may perform the action in the workspace at the
/// decision's time.
fn memberships<'a>(case: &Case<'a>, workspace_id: &EntityRef) -> impl Iterator<Item = &'a ActsIn> {
    let (at, action) = (case.at, &case.request.action);
    case.gathered.acts_in.iter().map(std::sync::Arc::as_ref).filter(move |row| {
        row.workspace_id == *workspace_id
            && row.window.holds(at)
            && row.allowed_actions.as_ref().is_none_or(|own| covered(own, action))
    })
}

fn workspace_is_open(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let Some(id) = &case.request.workspace_id else { return Ok(()) };
    let live = case.gathered.workspace.as_ref().is_some_and(|w| w.id == *id && w.live);
    unless(live && acts_in(case, id), Reason::WorkspaceAccessMissing)
}

/// Whether a grant of sufficient level on the object applies to the subject.
///
/// The grantee can be the subject, a team of the subject, or a delegator that it acts for.
fn is_granted(case: &Case<'_>, candidate: &Candidate<'_>, thing_id: &EntityRef) -> bool {
    let needed = candidate.terms.access_needed(case.request);
    access_granted(case, candidate, thing_id).is_some_and(|level| level >= needed)
}

/// Returns the highest level of the grants on the object that apply to the subject.
pub(crate) fn access_granted(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    thing_id: &EntityRef,
) -> Option<AccessLevel> {
    let reaches = |grant: &&std::sync::Arc<Grant>| {
        let id = &grant.grantee_id;
        if grant.grantee_kind == "team" {
            return case.teams().any(|team| team == id);
        }
        case.request.subject == *id.as_str()
            || candidate.links().iter().any(|link| link.delegator_id == *id.as_str())
    };
    let grants = case.gathered.grants.iter().filter(|grant| grant.resource_id == *thing_id);
    grants.filter(reaches).map(|grant| grant.access_level).max()
}

/// Whether an object of this workspace, or without a workspace, may be used in the named workspace.
fn serves(case: &Case<'_>, workspace_id: Option<&EntityRef>) -> bool {
    let named = case.request.workspace_id.as_ref();
    workspace_id.is_none_or(|own| named.is_none_or(|named| named == own))
}

fn resource_is_open(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let Some(id) = &case.request.resource_id else { return Ok(()) };
    let open = |resource: &Resource| resource.live && serves(case, resource.workspace_id.as_ref());
    let open = case.resource().is_some_and(open);
    unless(open && is_granted(case, candidate, id), Reason::ResourceAccessMissing)
}

fn project_is_open(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    project_is_reached(case, candidate)?;
    let Some(id) = &case.request.project_id else { return Ok(()) };
    unless(is_granted(case, candidate, id), Reason::ProjectAccessMissing)
}

/// Checks that the subject acts in a workspace of the named project.
///
/// The project must belong to that workspace or be visible in it. If the request names a workspace,
/// only that workspace counts.
fn project_is_reached(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    if case.request.project_id.is_none() {
        return Ok(());
    }
    let reached = project_named(case).is_some_and(|project| {
        let named = case.request.workspace_id.as_ref();
        reach(project).any(|own| named.is_none_or(|named| named == own) && acts_in(case, own))
    });
    unless(reached, Reason::ProjectAccessMissing)
}

fn project_named<'a>(case: &Case<'a>) -> Option<&'a Project> {
    let id = case.request.project_id.as_ref()?;
    case.gathered.project.as_deref().filter(|project| project.id == *id && project.live)
}

/// Returns the workspaces that give access to a project.
fn reach(project: &Project) -> impl Iterator<Item = &EntityRef> {
    project.workspace_id.iter().chain(&project.visible_in_workspaces)
}

/// Checks that the named tool, or the authority's tool, performs the action.
fn tool_performs_it(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let Some(tool) = candidate.terms.tool() else {
        return unless(case.request.tool_id.is_none(), Reason::ToolMismatch);
    };
    let performs = tool.live && covered(&tool.actions, &case.request.action);
    unless(performs && serves(case, tool.workspace_id.as_ref()), Reason::ToolMismatch)
}

/// Checks the definition of the named tool or, if none is named, of all tools for the action. An
/// authority for one tool does not narrow this: an unpinned tool must not make its action freer.
fn definition_is_pinned(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    case.terms().are_pinned_for(case.request)
}

fn context_is_complete(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    unless(candidate.terms.are_met_by(case.request), Reason::ContextIncomplete)
}
