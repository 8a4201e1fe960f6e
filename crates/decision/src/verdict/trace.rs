//! Builds the trace for `explain`: the checks of each stage and their results.

use super::{asked_before::Refusal, trace_terms, unsupported};
pub use crate::authority::trace_step::{
    ExceededBound, Observed, Outcome, PolicyStatement, StageTrace, TraceStep,
};
use crate::{
    authority::{
        candidate::Candidate,
        case::Case,
        choose::{Choice, FailedCheck},
        exceeded, purpose,
        used::AuthorityKind,
    },
    reason::{Reason, Stage},
    rules::combined::Rules,
};

/// Returns the four stages of a fully evaluated case.
pub(crate) fn stages(case: &Case<'_>, choice: &Choice<'_>, rules: &Rules<'_>) -> Vec<StageTrace> {
    let authority = authority(case, choice);
    let purpose = purpose(case, choice);
    let refusal = Refusal::of(case, rules);
    let unsupported = unsupported::steps(case, rules);
    let rules = rules_stage(rules);
    let stages = [authority, purpose, rules];
    let strongest = stages.iter().map(|stage| stage.outcome).max().unwrap_or(Outcome::Refuse);
    let decision = if strongest < Outcome::Refuse && !unsupported.is_empty() {
        stage(Stage::Decision, Some(Reason::ObligationUnsupported), unsupported)
    } else if let (Some(refusal), Outcome::Hold) = (refusal, strongest) {
        stage(Stage::Decision, Some(refusal.reason()), vec![refusal.step()])
    } else {
        let deciding = stages.iter().find(|stage| stage.outcome == strongest);
        let reason_code = match strongest {
            Outcome::Pass => Some(Reason::PermissionGranted),
            _ => deciding.and_then(|stage| stage.reason_code),
        };
        let steps = Vec::new();
        StageTrace { stage: Stage::Decision, outcome: strongest, reason_code, steps }
    };
    stages.into_iter().chain([decision]).collect()
}

fn authority(case: &Case<'_>, choice: &Choice<'_>) -> StageTrace {
    let refusal = choice.refusal.filter(|refusal| refusal.reason.stage() == Stage::Authority);
    let tried = |(candidate, refusal): &(Candidate<'_>, Option<FailedCheck>)| {
        let (kind, id) = candidate.name()?;
        let kind = match kind {
            AuthorityKind::Delegation => "delegation",
            AuthorityKind::Uses => "uses",
            AuthorityKind::ActsIn => "acts_in",
        };
        Some(candidate_step(case, candidate, kind, id, refusal.map(|refusal| refusal.reason)))
    };
    let mut steps: Vec<TraceStep> = choice.tried.iter().filter_map(tried).collect();
    steps.extend(trace_terms::steps(case, &choice.candidate, choice.refusal));
    stage(Stage::Authority, refusal.map(|refusal| refusal.reason), steps)
}

fn purpose(case: &Case<'_>, choice: &Choice<'_>) -> StageTrace {
    let candidate = &choice.candidate;
    let refusal = purpose::is_known(case, candidate)
        .and_then(|()| purpose::is_admitted(case, candidate))
        .and_then(|()| purpose::is_in_scope(case, candidate))
        .err();
    let declared = case.request.purpose.iter();
    let declared = declared.map(|slug| candidate_step(case, candidate, "purpose", slug, refusal));
    stage(Stage::Purpose, refusal, declared.collect())
}

fn rules_stage(rules: &Rules<'_>) -> StageTrace {
    let (outcome, reason_code) = match (rules.denials.first(), rules.holds.first()) {
        (Some(reason), _) => (Outcome::Refuse, Some(*reason)),
        (None, Some(reason)) => (Outcome::Hold, Some(*reason)),
        (None, None) => (Outcome::Pass, None),
    };
    StageTrace { stage: Stage::Rules, outcome, reason_code, steps: rules.steps.clone() }
}

fn stage(stage: Stage, refusal: Option<Reason>, steps: Vec<TraceStep>) -> StageTrace {
    let outcome = refusal.map_or(Outcome::Pass, |_| Outcome::Refuse);
    StageTrace { stage, outcome, reason_code: refusal, steps }
}

/// Builds a step for an authority. If bounds refuse the request, the step includes them with the
/// requested values.
fn candidate_step(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    kind: &str,
    id: &str,
    refusal: Option<Reason>,
) -> TraceStep {
    let outcome = refusal.map_or(Outcome::Pass, |_| Outcome::Refuse);
    let bounds = refusal.map(|reason| exceeded::bounds(case, candidate, reason));
    let exceeded = bounds.unwrap_or_default();
    let details = if exceeded.is_empty() {
        refusal.map(|reason| exceeded::details(case, candidate, reason)).unwrap_or_default()
    } else {
        exceeded.iter().map(ToString::to_string).collect()
    };
    let detail = if details.is_empty() {
        refusal.map_or("passes", Reason::sentence).to_owned()
    } else {
        details.join(". ")
    };
    TraceStep { exceeded, ..TraceStep::new(kind, id, outcome, refusal, detail) }
}
