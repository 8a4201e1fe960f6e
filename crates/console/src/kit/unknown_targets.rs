//! Targets with names that do not exist in the tenant and therefore cover no request. A policy with
//! a misspelt target looks harmless.

use crate::kit::{unknown_names, view::View};

/// Returns a warning for each target with an action or purpose that no record of the tenant names.
pub(crate) async fn unknown_targets(
    view: &View,
    tenant_id: &str,
    targets: &[String],
) -> Vec<String> {
    let named = |class: &str| -> Vec<String> {
        let names = targets.iter().filter_map(|target| target.strip_prefix(class));
        names.map(str::to_owned).collect()
    };
    let found = unknown_names::find(view, tenant_id, named("action:"), named("purpose:")).await;
    found.into_iter().map(|unknown| unknown.warning).collect()
}
