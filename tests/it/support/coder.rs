//! A tenant with a coding agent.

use serde_json::{Value, json};

use super::{Client, TestApp};

pub(crate) const TENANT: &str = "svc:tenant:example";
pub(crate) const AGENT: &str = "svc:agent:example:coder";
pub(crate) const PURPOSE: &str = "software-development";

/// Creates the tenant, a person who approves, and an agent with authority for every action of a coding agent. Returns an
/// API key that is bound to the agent.
pub(crate) async fn coder(app: &TestApp) -> String {
    let owner = app.owner();
    make(&owner, "tenants", json!({"name": "Example", "slug": "example"})).await;
    let person = json!({"tenant_id": TENANT, "principal_class": "human", "display_name": "Developer",
        "email": "dev@example.org"});
    let person = make(&owner, "principals", person).await["principal"]["id"].clone();
    let approver = json!({"tenant_id": TENANT, "principal_class": "human",
        "display_name": "Approver", "email": "approver@example.org"});
    make(&owner, "principals", approver).await;
    let agent = json!({"tenant_id": TENANT, "principal_class": "agent", "name": "coder",
        "display_name": "Writes code", "owner_principal_id": person});
    make(&owner, "principals", agent).await;
    let purpose = json!({"tenant_id": TENANT, "slug": PURPOSE, "name": "Develop software",
        "allowed_actions": ["code.*"]});
    make(&owner, "purposes", purpose).await;
    let delegation = json!({"tenant_id": TENANT, "delegator_id": person, "delegate_id": AGENT,
        "actions": ["code.*"], "purposes": [PURPOSE]});
    make(&owner, "delegations", delegation).await;
    key(app, &json!([AGENT])).await
}

/// Creates an API key of the tenant that is bound to these principals.
pub(crate) async fn key(app: &TestApp, principal_ids: &Value) -> String {
    let body = json!({"tenant_id": TENANT, "label": "coder", "principal_ids": principal_ids,
        "scopes": ["runtime:write", "runtime:read"]});
    make(&app.owner(), "api-keys", body).await["secret"].as_str().unwrap().to_owned()
}

/// Creates an active policy of the tenant.
pub(crate) async fn policy(app: &TestApp, cedar: &str) {
    let body = json!({"tenant_id": TENANT, "regime": "internal", "cedar": cedar,
        "applies_to": ["action:code.*"]});
    make(&app.owner(), "policies", body).await;
}

/// The body of a hook of Claude Code.
pub(crate) fn call(tool: &str, input: &Value) -> Value {
    json!({"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/home/dev/project",
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": input, "tool_use_id": "toolu_1"})
}

/// The reason of a denial for Claude Code; `None` for an answer without an opinion.
#[track_caller]
pub(crate) fn denial(answer: &Value) -> Option<String> {
    if *answer == json!({}) {
        return None;
    }
    let denial = &answer["hookSpecificOutput"];
    assert_eq!(denial["hookEventName"], "PreToolUse", "{answer:#}");
    assert_eq!(denial["permissionDecision"], "deny", "{answer:#}");
    Some(denial["permissionDecisionReason"].as_str().unwrap().to_owned())
}

async fn make(owner: &Client, collection: &str, body: Value) -> Value {
    let (status, made) = owner.post(&format!("/api/v1/{collection}"), body).await;
    assert_eq!(status, 201, "{collection}: {made:#}");
    made
}
