//! Targets that are written much like what a tenant has, and cover nothing: a policy with a misspelt one looks harmless.

use authority_model::proto::registry::Policy;

use crate::{known_actions::known_actions, unknown_action::unknown_action, view::View};

/// Of each action among the targets that no record of the tenant names, that it is none.
pub(super) async fn unknown_targets(
    view: &View,
    policy: &Policy,
    targets: &[String],
) -> Vec<String> {
    let actions = |target: &String| target.strip_prefix("action:").map(str::to_owned);
    let actions: Vec<String> = targets.iter().filter_map(actions).collect();
    if actions.is_empty() {
        return Vec::new();
    }
    let Some(known) = known_actions(view, &policy.tenant_id).await else { return Vec::new() };
    actions.iter().filter_map(|action| unknown_action(action, &known)).collect()
}
