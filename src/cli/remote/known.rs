//! Whether a record of the tenant names an action that is to be suspended, or that a policy is for: a misspelt one stops
//! and holds nothing.

use std::collections::BTreeSet;

use authority_console::unknown_action;
use serde_json::{Value, json};

use crate::cli::remote::{
    server::Server,
    surface::{SURFACE, Surface},
    text::plain,
};

/// Records that name actions: the list, and the member of each with them.
const LISTS: [(&str, &str); 3] =
    [("tools", "actions"), ("purposes", "allowed_actions"), ("delegations", "actions")];
/// The largest page. Of what is not on it nothing is known, and nothing is said.
const MOST: usize = 500;

/// What a person is told of each of the actions before they act; nothing of one that is known, or if this could not be
/// read.
pub(super) async fn warnings(
    server: &Server,
    tenant: Option<&str>,
    actions: &[&str],
) -> Vec<String> {
    // An API key lists none of these.
    if actions.is_empty() || server.opens(Surface::ApiKeys) {
        return Vec::new();
    }
    let Some(names) = names(server, tenant).await else { return Vec::new() };
    let warnings = actions.iter().filter_map(|action| unknown_action(action, &names));
    warnings.map(|warning| plain(&warning)).collect()
}

/// The actions and patterns that the tenant's records name.
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
    // Tools often have patterns alone: what was permitted or held of late is known, too.
    let query = json!({"tenant_id": tenant, "limit": MOST});
    if let Ok(body) = server.get(&server.path(&[SURFACE, "decisions"]), &query).await {
        let found = server.json(&body).ok()?;
        let decided = found["decisions"].as_array().into_iter().flatten();
        let decided = decided.filter(|one| one["decision"] != "deny");
        names.extend(decided.filter_map(|one| one["action"].as_str().map(str::to_owned)));
    }
    Some(names)
}
