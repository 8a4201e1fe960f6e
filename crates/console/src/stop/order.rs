//! A stop that a person confirmed: a stop signal, or a quarantine for each pattern of actions.

use authority_model::proto::registry::{
    CreateQuarantineRequest, CreateStopSignalRequest, Quarantine, StopSignal,
};

use super::target::Target;
use crate::kit::prelude::*;

/// One act of a stop, and its result.
pub(super) struct Act {
    /// The pattern of actions. `None` if the act is for all actions.
    pub(super) action: Option<String>,
    /// The id of the stop signal or the quarantine.
    pub(super) outcome: Result<String, Status>,
}

/// Stops the target. Every act is tried, regardless of the result of the others, to stop as much as
/// possible. With the same `key`, each act is done only once while its stop is in force.
pub(super) async fn stop(view: &View, target: &Target, reason: &str, key: &str) -> Vec<Act> {
    if let Some(subject) = target.subject.as_ref().filter(|_| target.is_signal()) {
        let outcome = signal(view, target, &subject.id, reason, key).await;
        return vec![Act { action: None, outcome }];
    }
    let actions: Vec<Option<String>> = match target.actions.as_slice() {
        [] => vec![None],
        actions => actions.iter().cloned().map(Some).collect(),
    };
    let acts = actions.into_iter().map(|action| async move {
        let outcome = quarantine(view, target, action.clone(), reason, key).await;
        Act { action, outcome }
    });
    some_at_once(acts).await
}

async fn signal(
    view: &View,
    target: &Target,
    actor_id: &str,
    reason: &str,
    key: &str,
) -> Result<String, Status> {
    let signal = StopSignal {
        tenant_id: Some(target.tenant_id.clone()),
        actor_id: actor_id.to_owned(),
        reason: reason.to_owned(),
        ..StopSignal::default()
    };
    let request = CreateStopSignalRequest { stop_signal: Some(signal) };
    let key = (!key.is_empty()).then_some(key);
    let made = view.calls.call_once(&request, key).await?;
    Ok(made.id)
}

async fn quarantine(
    view: &View,
    target: &Target,
    action: Option<String>,
    reason: &str,
    key: &str,
) -> Result<String, Status> {
    // Each action has its own key. The order of actions in a repeated form then does not matter.
    let key = (!key.is_empty()).then(|| match &action {
        Some(action) => format!("{key}-{action}"),
        None => key.to_owned(),
    });
    let quarantine = Quarantine {
        tenant_id: Some(target.tenant_id.clone()),
        subject_id: target.subject.as_ref().map(|subject| subject.id.clone()),
        action,
        delegation_id: target.delegation.as_ref().map(|delegation| delegation.id.clone()),
        reason: reason.to_owned(),
        ..Quarantine::default()
    };
    let request = CreateQuarantineRequest { quarantine: Some(quarantine) };
    let made = view.calls.call_once(&request, key.as_deref()).await?;
    Ok(made.id)
}
