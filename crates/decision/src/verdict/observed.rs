//! The outcomes that decisions would have had with observing versions of policies in force.
//!
//! [`decide`] ignores observing versions. No decision waits for this module: it evaluates simulations
//! and the recorded facts of past decisions.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{decide::decide, outcome::Verdict};
use crate::{
    authority::trace_step::{Observed, Outcome, PolicyStatement, TraceStep},
    facts::gathered::{Facts, Gathered},
    levels::Decision,
    policy::compiled::{CompiledPolicy, PolicyReference},
    reason::Reason,
    request::draft::Request,
};

/// Returns the outcome with each observing version in force, in order of policy.
///
/// Each is decided on its own, in the place of the policy's active version or in addition to the
/// active policies. Versions with an unreadable text are left out. `verdict` is the verdict on the same request, facts and time.
pub fn observe(
    request: &Request,
    facts: &Facts,
    at: DateTime<Utc>,
    verdict: &Verdict,
) -> Vec<Observed> {
    let versions = facts.gathered.observing.iter().filter(|version| version.is_readable());
    let observed = versions.map(|version| {
        let would_be = decide(request, &in_force(facts, version), at);
        compared(&version.reference, &would_be, verdict)
    });
    observed.collect()
}

/// Decides, and adds a step for each observing version to the trace. Without `explain` the verdict
/// has no trace.
pub fn decide_and_observe(request: &Request, facts: &Facts, at: DateTime<Utc>) -> Verdict {
    let mut verdict = decide(request, facts, at);
    if request.explain {
        let observed = observe(request, facts, at, &verdict);
        let last = verdict.trace.as_mut().and_then(|stages| stages.last_mut());
        if let Some(stage) = last {
            stage.steps.extend(observed.into_iter().map(step));
        }
    }
    verdict
}

/// Returns the facts as they would be with this version in force. They have no observing versions.
fn in_force(facts: &Facts, version: &Arc<CompiledPolicy>) -> Facts {
    let gathered = &facts.gathered;
    let id = &version.reference.id;
    let others = gathered.policies.iter().filter(|policy| policy.reference.id != *id);
    let mut policies: Vec<_> = others.chain([version]).cloned().collect();
    policies.sort_by(|one, other| one.reference.id.cmp(&other.reference.id));
    let gathered = Gathered::clone(gathered).with_policies(policies, Vec::new());
    Facts { gathered: Arc::new(gathered), ..facts.clone() }
}

/// Compares the outcome with a version in force with the verdict.
fn compared(version: &PolicyReference, would_be: &Verdict, verdict: &Verdict) -> Observed {
    Observed {
        policy_id: version.id.clone(),
        version: version.version,
        decision: would_be.decision,
        reason_code: would_be.reason_code,
        would_change: effect(would_be) != effect(verdict),
        statements: deciding(version, would_be),
    }
}

/// The parts of a verdict that have an effect for the caller.
fn effect(verdict: &Verdict) -> impl PartialEq + '_ {
    (
        verdict.decision,
        verdict.reason_code,
        &verdict.obligations,
        &verdict.stop_conditions,
        &verdict.approvals_needed,
    )
}

/// Returns the version's statements that lead to the outcome; none for a permission.
fn deciding(version: &PolicyReference, would_be: &Verdict) -> Vec<PolicyStatement> {
    let outcome = match would_be.decision {
        Decision::Deny => Outcome::Refuse,
        Decision::RequireApproval => Outcome::Hold,
        Decision::Allow | Decision::AllowWithConstraints => return Vec::new(),
    };
    let steps = would_be.trace.iter().flatten().flat_map(|stage| &stage.steps);
    // If the authority refuses the action, the policies are evaluated, but do not decide.
    let decides = |reason: Reason| would_be.reasons.contains(&reason);
    let steps =
        steps.filter(|step| step.outcome == outcome && step.reason_code.is_some_and(decides));
    let statements = steps.filter_map(|step| step.statement.clone());
    statements.filter(|statement| statement.policy_id == version.id).collect()
}

/// Builds the step of a trace. It passes, because it has no effect on the decision.
fn step(observed: Observed) -> TraceStep {
    let Observed { policy_id, version, decision, reason_code, would_change, statements } =
        &observed;
    let outcome = match (would_change, decision) {
        (false, _) => "would not change the outcome".to_owned(),
        (true, Decision::Allow | Decision::AllowWithConstraints) => "would permit it".to_owned(),
        (true, Decision::RequireApproval) => format!("would hold it: {}", reason_code.word()),
        (true, Decision::Deny) => format!("would deny it: {}", reason_code.word()),
    };
    let ids: Vec<_> = statements.iter().map(|statement| statement.id.as_str()).collect();
    let by = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    let detail = format!("version {version}, which is only observing, {outcome}{by}");
    let step = TraceStep::new("observed", policy_id.as_str(), Outcome::Pass, None, detail);
    TraceStep { observed: Some(Box::new(observed)), ..step }
}
