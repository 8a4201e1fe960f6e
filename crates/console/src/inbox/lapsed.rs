//! A pending request that no longer needs an approval: the policies that held it have changed.

use authority_model::{
    proto::{
        approval::{Approval, ApprovalPolicy},
        registry::GetPolicyRequest,
    },
    wire::Time,
};

use crate::kit::prelude::*;

/// A pending request that would be permitted without an approval if the agent sent it again now.
pub(super) struct Lapsed {
    /// The changes of the policies that held it, as sentences.
    pub(super) changes: Vec<String>,
}

impl Lapsed {
    /// `None` if an approval is still needed, or if this is unknown.
    pub(super) async fn of(view: &View, approval: &Approval) -> Option<Self> {
        approval.would_be.as_ref().filter(|would_be| would_be.no_longer_needed)?;
        let changes = some_at_once(approval.policies.iter().map(|by| change(view, approval, by)));
        Some(Self { changes: changes.await.into_iter().flatten().collect() })
    }
}

/// Describes how a policy has changed since it held the request.
async fn change(view: &View, approval: &Approval, by: &ApprovalPolicy) -> Option<String> {
    if !view.may(rpc::GET_POLICY) {
        return None;
    }
    let name = by.name.as_deref().unwrap_or(short(&by.id));
    let request = GetPolicyRequest { id: by.id.clone() };
    let policy = match view.calls.call(&request).await {
        Ok(policy) => policy,
        Err(status) if is_absent(&status) => {
            return Some(t::inbox::policy_gone(name));
        }
        Err(_) => return None,
    };
    let activated = policy.activated_at.and_then(Time::moment);
    let asked = approval.created_at.and_then(Time::moment);
    let ended = Moment::of_time(policy.effective_until, view.now).filter(|end| end.past);
    match policy.state.as_deref() {
        Some("active") => {}
        Some("retired") => return Some(t::inbox::policy_retired(name)),
        _ => return Some(t::inbox::policy_not_in_force(name)),
    }
    if let Some(end) = ended {
        return Some(t::inbox::policy_ended(name, end.shown));
    }
    let activated = activated.filter(|at| asked.is_some_and(|asked| *at > asked))?;
    Some(t::inbox::policy_activated(name, Moment::of(activated, view.now).shown))
}
