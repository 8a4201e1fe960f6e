//! A request that waits although what held it is another by now: the agent may not need an approval any more.

use authority_model::proto::{
    approval::{Approval, ApprovalPolicy},
    registry::{GetPolicyRequest, Policy},
    runtime::{Decision, SimulateDecisionRequest, SimulateDecisionResponse},
};

use super::would_be::WouldBe;
use crate::{
    calls::some_at_once,
    problem::is_absent,
    rpc,
    show::{Moment, short},
    view::View,
};

/// That what held a request has changed.
pub(super) struct Lapsed {
    /// Whether the same question, asked now, would be permitted without an approval. Who may not simulate decisions is
    /// not told that.
    pub(super) is_certain: bool,
    /// What became of the policies that held it, in sentences.
    pub(super) changes: Vec<String>,
}

impl Lapsed {
    /// `None` if nothing is known to have changed, or something else would deny or hold it.
    pub(super) async fn of(
        view: &View,
        approval: &Approval,
        would_be: Option<&WouldBe>,
    ) -> Option<Self> {
        would_be.filter(|would_be| would_be.permits())?;
        let changes = some_at_once(approval.policies.iter().map(|by| change(view, approval, by)));
        let (asked_now, changes) = tokio::join!(asked_now(view, approval), changes);
        let changes: Vec<String> = changes.into_iter().flatten().collect();
        match asked_now {
            Some(Decision::Allow | Decision::AllowWithConstraints) => {
                Some(Self { is_certain: true, changes })
            }
            Some(_) => None,
            None => (!changes.is_empty()).then_some(Self { is_certain: false, changes }),
        }
    }
}

/// What would be decided without this request; `None` if it is not known.
async fn asked_now(view: &View, approval: &Approval) -> Option<Decision> {
    if !view.may(rpc::SIMULATE_DECISION) {
        return None;
    }
    let request = SimulateDecisionRequest {
        decision_id: Some(approval.decision_id.clone()),
        ..SimulateDecisionRequest::default()
    };
    let simulated: SimulateDecisionResponse =
        view.calls.call(rpc::SIMULATE_DECISION, &request).await.ok()?;
    Decision::try_from(simulated.decision).ok()
}

/// What became of a policy since it held the request.
async fn change(view: &View, approval: &Approval, by: &ApprovalPolicy) -> Option<String> {
    if !view.may(rpc::GET_POLICY) {
        return None;
    }
    let name = by.name.as_deref().unwrap_or(short(&by.id));
    let request = GetPolicyRequest { id: by.id.clone() };
    let policy = match view.calls.call::<_, Policy>(rpc::GET_POLICY, &request).await {
        Ok(policy) => policy,
        Err(status) if is_absent(&status) => {
            return Some(format!("The policy “{name}” is not there any more."));
        }
        Err(_) => return None,
    };
    let activated = policy.activated_at.and_then(authority_model::wire::Time::moment);
    let asked = approval.created_at.and_then(authority_model::wire::Time::moment);
    let ended = Moment::of_time(policy.effective_until, view.now).filter(|end| end.past);
    match policy.state.as_deref() {
        Some("active") => {}
        Some("retired") => return Some(format!("The policy “{name}” was retired.")),
        _ => return Some(format!("The policy “{name}” is not in force any more.")),
    }
    if let Some(end) = ended {
        return Some(format!("The policy “{name}” ended on {}.", end.shown));
    }
    let activated = activated.filter(|at| asked.is_some_and(|asked| *at > asked))?;
    let at = Moment::of(activated, view.now);
    Some(format!("The policy “{name}” has had another text since {}.", at.shown))
}
