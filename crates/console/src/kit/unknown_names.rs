//! Actions and purposes that a tenant does not know, which are often misspelt.

use authority_model::proto::registry::{
    FindUnknownNamesRequest, FindUnknownNamesResponse, UnknownName,
};

use crate::kit::{rpc, view::View};

/// Finds unknown actions. Empty if the person may not read them, or if they can't be read now.
pub(crate) async fn unknown_actions(
    view: &View,
    tenant_id: &str,
    actions: &[String],
) -> Vec<UnknownName> {
    find(view, tenant_id, actions.to_vec(), Vec::new()).await
}

/// Returns a warning for each of a policy's targets with an action or purpose that no record of the
/// tenant names. The target covers no request: a policy with a misspelt target looks harmless.
pub(crate) async fn unknown_targets(
    view: &View,
    tenant_id: &str,
    targets: &[String],
) -> Vec<String> {
    let named = |class: &str| -> Vec<String> {
        let names = targets.iter().filter_map(|target| target.strip_prefix(class));
        names.map(str::to_owned).collect()
    };
    let found = find(view, tenant_id, named("action:"), named("purpose:")).await;
    found.into_iter().map(|unknown| unknown.warning).collect()
}

/// Finds unknown actions, then unknown purposes.
async fn find(
    view: &View,
    tenant_id: &str,
    actions: Vec<String>,
    purposes: Vec<String>,
) -> Vec<UnknownName> {
    if actions.is_empty() && purposes.is_empty() || !view.may(rpc::FIND_UNKNOWN_NAMES) {
        return Vec::new();
    }
    let tenant_id = Some(tenant_id.to_owned());
    let request = FindUnknownNamesRequest { tenant_id, actions, purposes };
    let found = view.calls.call(&request).await;
    let found: FindUnknownNamesResponse = found
        .inspect_err(|error| tracing::warn!(%error, "failed to look for unknown names"))
        .unwrap_or_default();
    found.unknown_names
}
