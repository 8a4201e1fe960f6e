//! Traces the terms that tools set, with the tool of each term, and the access level needed.

use authority_ids::EntityRef;

use crate::{
    authority::{
        candidate::Candidate,
        case::Case,
        choose::FailedCheck,
        input_check,
        trace_step::{Outcome, TraceStep},
    },
    facts::terms::{Terms, is_present},
    levels::AccessLevel,
    reason::Reason,
};

/// Returns a step for each tool that binds a request without a tool, and a step for missing access.
pub(crate) fn steps(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    refusal: Option<FailedCheck>,
) -> Vec<TraceStep> {
    let reason = refusal.map(|refusal| refusal.reason);
    let mut steps = joined(case, candidate, reason);
    steps.extend(definition(case, reason));
    if reason == Some(Reason::ContextInvalid) {
        steps.extend(input_check::steps(case, candidate));
    }
    let (request, access) = (case.request, Reason::ResourceAccessMissing);
    let missing = [
        ("resource", &request.resource_id, access),
        ("project", &request.project_id, Reason::ProjectAccessMissing),
    ];
    let missing = missing.into_iter().filter(|(.., own)| reason == Some(*own));
    steps.extend(missing.filter_map(|(kind, id, own)| {
        let detail = lacking(case, candidate, id.as_ref()?);
        Some(refused(kind, id.as_deref()?, own, detail))
    }));
    steps
}

fn joined(case: &Case<'_>, candidate: &Candidate<'_>, reason: Option<Reason>) -> Vec<TraceStep> {
    let Terms::Joined(terms) = candidate.terms else { return Vec::new() };
    let lacks = |tool_id: &EntityRef| {
        reason == Some(Reason::ContextIncomplete)
            && terms.requires.iter().any(|(m, own)| own == tool_id && !is_present(case.request, m))
    };
    let step = |(tool_id, set): (&EntityRef, Vec<String>)| {
        let detail = format!(
            "no tool is named, so the strictest terms of all tools that perform the action apply; \
             this tool sets {}; if `tool_id` names a tool, only its own terms apply",
            set.join(", ")
        );
        if lacks(tool_id) {
            return refused("tool", tool_id, Reason::ContextIncomplete, detail);
        }
        TraceStep::new("tool", tool_id, Outcome::Pass, None, detail)
    };
    terms.set_by().into_iter().map(step).collect()
}

/// Returns the step of a tool with a definition that refuses the request.
fn definition(case: &Case<'_>, reason: Option<Reason>) -> Option<TraceStep> {
    let terms = case.terms();
    let refusal = terms.are_pinned_for(case.request).err();
    let reason = refusal.filter(|refusal| reason == Some(*refusal))?;
    let digest = case.request.tool_definition_digest.as_ref();
    let tool_id = match terms {
        Terms::Nobody => None,
        Terms::Of(tool) => Some(&tool.id),
        Terms::Joined(terms) => {
            let mut others = terms.definitions.iter().filter(|(own, _)| digest != Some(*own));
            terms.unpinned_by.as_ref().or_else(|| others.next().map(|(_, tool_id)| tool_id))
        }
    };
    let detail = match (reason, digest) {
        (Reason::CapabilityQuarantined, _) => "the definition of this tool is not pinned",
        (_, None) => "`tool_definition_digest` is missing",
        (_, Some(_)) => "`tool_definition_digest` is not the digest of the pinned definition",
    };
    Some(refused("tool", tool_id?, reason, detail.to_owned()))
}

/// Describes the access level needed and the highest granted one.
fn lacking(case: &Case<'_>, candidate: &Candidate<'_>, thing_id: &EntityRef) -> String {
    let needed = candidate.terms.access_needed(case.request);
    let granted = crate::authority::choose::access_granted(case, candidate, thing_id);
    let granted = granted.map_or("none", AccessLevel::word);
    format!(
        "{needed} is needed and {granted} is granted; only a tool's record can require less \
         than execute, a request's declaration cannot"
    )
}

fn refused(kind: &str, id: &str, reason: Reason, detail: String) -> TraceStep {
    TraceStep::new(kind, id, Outcome::Refuse, Some(reason), detail)
}
