//! Checks whether any record of the tenant uses the actions of a quarantine, or the targets of a
//! policy. A misspelt name would have no effect.

use authority_client::{SURFACE, Surface};
use serde_json::{Value, json};

use crate::{
    server::Server,
    text::{self, plain},
};

/// Returns a warning for each unknown name, for display before the user confirms. There are no
/// warnings if the names could not be checked.
pub(crate) async fn warnings(
    server: &Server,
    tenant: Option<&str>,
    actions: &[&str],
    purposes: &[&str],
) -> Vec<String> {
    // An API key cannot look for unknown names.
    if actions.is_empty() && purposes.is_empty() || server.opens(Surface::ApiKeys) {
        return Vec::new();
    }
    let query = json!({"tenant_id": tenant, "actions": actions, "purposes": purposes});
    let path = server.path(&[SURFACE, "unknown-names"]);
    let Ok(body) = server.get(&path, &query).await else { return Vec::new() };
    let found: Value = server.json(&body).unwrap_or_default();
    let unknown = found["unknown_names"].as_array().into_iter().flatten();
    unknown.map(|one| plain(text::of(one, "warning"))).collect()
}
