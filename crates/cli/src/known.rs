//! Checks whether any record of the tenant uses the action of a quarantine or of a policy. A
//! misspelt action would have no effect.

use std::collections::BTreeSet;

use authority_client::{SURFACE, Surface};
use authority_console::unknown_action;
use serde_json::{Value, json};

use crate::{server::Server, text::plain};

/// Records with actions: the list, and the field of each record with the actions.
const LISTS: [(&str, &str); 3] =
    [("tools", "actions"), ("purposes", "allowed_actions"), ("delegations", "actions")];
/// The largest page. If there are more records, no warnings are returned.
const MOST: usize = 500;

/// Returns a warning for each unknown action, for display before the user confirms. There are no
/// warnings if the records could not be read.
pub(crate) async fn warnings(
    server: &Server,
    tenant: Option<&str>,
    actions: &[&str],
) -> Vec<String> {
    // An API key cannot list these records.
    if actions.is_empty() || server.opens(Surface::ApiKeys) {
        return Vec::new();
    }
    let Some(names) = names(server, tenant).await else { return Vec::new() };
    let warnings = actions.iter().filter_map(|action| unknown_action(action, &names));
    warnings.map(|warning| plain(&warning)).collect()
}

/// Returns the actions and patterns of the tenant's records.
async fn names(server: &Server, tenant: Option<&str>) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for (list, member) in LISTS {
        let path = server.path(&[SURFACE, list]);
        let query = json!({"tenant_id": tenant, "limit": MOST});
        let found = server.json(&server.get(&path, &query).await.ok()?).ok()?;
        let is_all = found["next_page_token"].is_null();
        let records = found[list].as_array().filter(|_| is_all)?;
        let of = |record: &Value| record[member].as_array().cloned().unwrap_or_default();
        let all = records.iter().flat_map(of);
        names.extend(all.filter_map(|name| name.as_str().map(str::to_owned)));
    }
    // Tools often have only patterns. Actions that were recently permitted or held also count as
    // known.
    let query = json!({"tenant_id": tenant, "limit": MOST});
    if let Ok(body) = server.get(&server.path(&[SURFACE, "decisions"]), &query).await {
        let found = server.json(&body).ok()?;
        let decided = found["decisions"].as_array().into_iter().flatten();
        let decided = decided.filter(|one| one["decision"] != "deny");
        names.extend(decided.filter_map(|one| one["action"].as_str().map(str::to_owned)));
    }
    Some(names)
}
