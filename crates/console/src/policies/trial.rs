//! What a text would do: whether it is valid, and which of the tenant's last decisions it would change.

use authority_model::proto::{
    registry::{Policy, PolicyProblem, ValidatePolicyRequest, ValidatePolicyResponse},
    runtime::{CandidatePolicy, ImpactPoliciesRequest, ImpactPoliciesResponse, Outcome},
};
use tonic::Status;

use crate::{
    rpc,
    show::{Moment, short},
    text,
    view::View,
};

/// How many of the newest decisions a text is run against.
pub(super) const LAST: i32 = 200;

/// What was found out about a text.
#[derive(Default)]
pub(super) struct Trial {
    /// Whether it was checked.
    pub(super) checked: bool,
    pub(super) problems: Vec<PolicyProblem>,
    pub(super) warnings: Vec<PolicyProblem>,
    pub(super) impact: Option<Impact>,
}

/// What would change of the last decisions.
pub(super) struct Impact {
    /// Decisions that the text was run against.
    pub(super) run: u32,
    pub(super) changed_total: u32,
    /// Decisions that could not be decided again.
    pub(super) unreadable: u32,
    pub(super) changed: Vec<Changed>,
}

/// A decision that would be another.
pub(super) struct Changed {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) action: String,
    pub(super) at: Option<Moment>,
    pub(super) before: Verdict,
    pub(super) after: Verdict,
}

pub(super) struct Verdict {
    pub(super) word: &'static str,
    pub(super) reason_code: String,
    pub(super) obligations: Vec<String>,
}

/// Whether the text is valid for what the policy's tenant declares.
///
/// # Errors
/// As the operation answers.
pub(super) async fn check(view: &View, policy: &Policy, cedar: &str) -> Result<Trial, Status> {
    let request = ValidatePolicyRequest {
        cedar: Some(cedar.to_owned()),
        target_class: None,
        tenant_id: Some(policy.tenant_id.clone()),
    };
    let checked: ValidatePolicyResponse = view.calls.call(rpc::VALIDATE_POLICY, &request).await?;
    let (problems, warnings) = (checked.problems, checked.warnings);
    Ok(Trial { checked: true, problems, warnings, impact: None })
}

/// Runs the text, in the place of the policy's present one, against the tenant's last decisions.
///
/// # Errors
/// As the operation answers.
pub(super) async fn run(view: &View, policy: &Policy, cedar: &str) -> Result<Impact, Status> {
    let candidate = CandidatePolicy {
        policy_id: Some(policy.id.clone()),
        cedar: cedar.to_owned(),
        applies_to: Vec::new(),
    };
    let request = ImpactPoliciesRequest {
        candidate_policies: vec![candidate],
        ..ImpactPoliciesRequest::default()
    };
    impact(view, policy, request).await
}

/// What the last decisions would have been without the policy.
///
/// # Errors
/// As the operation answers.
pub(super) async fn without(view: &View, policy: &Policy) -> Result<Impact, Status> {
    let request = ImpactPoliciesRequest {
        without_policies: vec![policy.id.clone()],
        ..ImpactPoliciesRequest::default()
    };
    impact(view, policy, request).await
}

async fn impact(
    view: &View,
    policy: &Policy,
    mut request: ImpactPoliciesRequest,
) -> Result<Impact, Status> {
    request.tenant_id = Some(policy.tenant_id.clone());
    request.last = Some(LAST);
    let found: ImpactPoliciesResponse = view.calls.call(rpc::IMPACT_POLICIES, &request).await?;
    let changed = found.changed.into_iter().map(|changed| Changed {
        agent: short(&changed.subject).to_owned(),
        at: Moment::of_time(changed.evaluated_at, view.now),
        before: verdict(changed.before),
        after: verdict(changed.after),
        id: changed.decision_id,
        action: changed.action,
    });
    Ok(Impact {
        run: found.considered.saturating_sub(found.unreadable),
        changed_total: found.changed_total,
        unreadable: found.unreadable,
        changed: changed.collect(),
    })
}

fn verdict(outcome: Option<Outcome>) -> Verdict {
    let outcome = outcome.unwrap_or_default();
    Verdict {
        word: text::outcome(outcome.decision),
        reason_code: outcome.reason_code,
        obligations: outcome.obligations,
    }
}
