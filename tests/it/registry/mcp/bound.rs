//! API keys that are bound to agents report only changes of pinned tools.

use serde_json::{Value, json};

use super::{AGENT, World, definition};
use crate::support::{Answered, Client, Members, Plain, new_api_key, new_principal, only};

/// Returns a key that is bound to the agent.
async fn bound(world: &World, agent: &str) -> Client {
    let body = new_api_key("dev", &["runtime:read", "runtime:write", "tools:observe"])
        .with("principal_ids", [agent]);
    let made = world.app.owner().create_api_key(body).await.assert_status(201);
    world.app.client(made["secret"].as_str().unwrap())
}

async fn report(key: &Client, definition: Value) -> Value {
    let body = json!({"definitions": [definition]});
    let answer = key.observe_mcp_server("github", body).await.assert_status(200);
    answer["tools"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_key_marks_a_pinned_tool_as_drifted_and_does_nothing_else() {
    let world = World::start().await;
    let key = bound(&world, AGENT).await;
    let unknown = report(&key, definition("create_issue", "a")).await;
    assert_eq!((unknown["change"].text(), &unknown["id"]), ("ignored", &Value::Null));
    let quarantined = world.reported(&[definition("create_issue", "a")]).await;
    let again = report(&key, definition("create_issue", "b")).await;
    assert_eq!((again["change"].text(), again["pin"].text()), ("ignored", "quarantined"));
    let id = quarantined[0]["id"].as_str().unwrap();
    let kept = world.tool(id).await;
    assert_eq!(kept["mcp"]["seen_digest"], quarantined[0]["definition_digest"]);
    world.with_pinned(&definition("create_issue", "a")).await;
    assert_eq!(report(&key, definition("create_issue", "a")).await["change"], "unchanged");
    let drifted = report(&key, definition("create_issue", "b")).await;
    assert_eq!((drifted["change"].text(), drifted["pin"].text()), ("changed", "drifted"));
    // It binds every gateway, and the other key's requests.
    let digest = only("tool_definition_digest", &quarantined[0]["definition_digest"]);
    assert_eq!(world.reason(digest).await, "capability_quarantined");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_another_agent_reports_nothing() {
    let world = World::start().await;
    let stranger = new_principal("agent", "Other").with("name", "other");
    super::made(&world.admin, "principals", stranger).await;
    let (id, _) = world.with_pinned(&definition("create_issue", "a")).await;
    let key = bound(&world, "svc:agent:acme:other").await;
    assert_eq!(report(&key, definition("create_issue", "b")).await["change"], "ignored");
    assert_eq!(world.tool(&id).await["mcp"]["pin"], "pinned");
}
