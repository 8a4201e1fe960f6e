//! A request that waits although what held it is another by now: the agent does not need an approval any more.

use authority_model::{
    proto::{
        approval::{Approval, ApprovalPolicy},
        registry::{GetPolicyRequest, Policy},
    },
    wire::Time,
};

use crate::{
    calls::some_at_once,
    problem::is_absent,
    rpc,
    show::{Moment, short},
    view::View,
};

/// That a request waits although the same question, asked now, would be permitted without an approval.
pub(super) struct Lapsed {
    /// What became of the policies that held it, in sentences.
    pub(super) changes: Vec<String>,
}

impl Lapsed {
    /// `None` if an approval is needed still, or if that is not known.
    pub(super) async fn of(view: &View, approval: &Approval) -> Option<Self> {
        approval.would_be.as_ref().filter(|would_be| would_be.no_longer_needed)?;
        let changes = some_at_once(approval.policies.iter().map(|by| change(view, approval, by)));
        Some(Self { changes: changes.await.into_iter().flatten().collect() })
    }
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
    let activated = policy.activated_at.and_then(Time::moment);
    let asked = approval.created_at.and_then(Time::moment);
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
    Some(format!("The policy “{name}” was activated on {}, after this was asked.", at.shown))
}
