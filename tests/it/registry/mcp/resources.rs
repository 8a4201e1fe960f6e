//! Gateways look up the resource that a call names.

use serde_json::{Value, json};

use super::{AGENT, TENANT, World, definition, made, refused};
use crate::support::{Answered, Client, Members, new_api_key, new_principal, only};

const PATH: &str = "/v1/mcp-servers/github:resource";

async fn key(world: &World, agents: &[&str], scope: &str) -> Client {
    let body = new_api_key("x", &[scope]).with("principal_ids", agents);
    let made = world.app.owner().create_api_key(body).await.assert_status(201);
    world.app.client(made["secret"].as_str().unwrap())
}

async fn look_up(key: &Client, kind: &str, external_id: &str) -> (u16, Value) {
    key.get(&format!("{PATH}?kind={kind}&external_id={external_id}")).await
}

/// Creates a tool with calls that name a repository. Returns its id.
async fn mapped(world: &World) -> String {
    let (tool, _) = world.with_pinned(&definition("create_issue", "a")).await;
    let map = json!({"resource": {"kind": "repository", "pointer": "/repo"}});
    let body = json!({"mcp": {"context_map": map}});
    world.admin.update_tool(&tool, body).await.assert_status(200);
    tool
}

async fn resource(world: &World, kind: &str, external_id: &str) -> Value {
    let body = json!({"tenant_id": TENANT, "kind": kind, "name": "r", "external_id": external_id});
    made(&world.admin, "resources", body).await["id"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_is_found_by_its_external_id_if_a_pinned_tool_names_its_kind() {
    let world = World::start().await;
    let id = resource(&world, "repository", "acme/web").await;
    resource(&world, "board", "acme/web").await;
    let bound = key(&world, &[AGENT], "runtime:read").await;
    // No tool names the kind yet.
    for key in [&bound, &world.key] {
        refused(look_up(key, "repository", "acme/web").await, 404, "not_found", "acme/web");
    }
    mapped(&world).await;
    for key in [&bound, &world.key, &world.admin] {
        assert_eq!(look_up(key, "repository", "acme/web").await, (200, only("resource_id", &id)));
        for (kind, external_id) in [("repository", "acme/app"), ("board", "acme/web")] {
            let answer = look_up(key, kind, external_id).await;
            refused(answer, 404, "not_found", external_id);
        }
    }
    refused(look_up(&bound, "repository", "").await, 400, "invalid_request", "external_id");
    refused(look_up(&bound, "Repository", "x").await, 400, "invalid_request", "kind");
    // Calls of a drifted tool are denied without a look-up.
    world.reported(&[definition("create_issue", "b")]).await;
    refused(look_up(&bound, "repository", "acme/web").await, 404, "not_found", "acme/web");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_no_person_pinned_names_no_resource() {
    let world = World::start().await;
    resource(&world, "repository", "acme/web").await;
    // Another tool is pinned, and names no resource.
    world.with_pinned(&definition("list_issues", "a")).await;
    let reported = world.reported(&[definition("create_issue", "a")]).await;
    let map = json!({"resource": {"kind": "repository", "pointer": "/repo"}});
    world
        .admin
        .update_tool(reported[0]["id"].as_str().unwrap(), json!({"mcp": {"context_map": map}}))
        .await
        .assert_status(200);
    refused(look_up(&world.key, "repository", "acme/web").await, 404, "not_found", "acme/web");
    world
        .pin(reported[0]["id"].as_str().unwrap(), &reported[0]["definition_digest"])
        .await
        .assert_status(200);
    assert_eq!(look_up(&world.key, "repository", "acme/web").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_keys_find_nothing() {
    let world = World::start().await;
    resource(&world, "repository", "acme/web").await;
    mapped(&world).await;
    let other = new_principal("agent", "Other").with("name", "other");
    made(&world.admin, "principals", other).await;
    let other = key(&world, &["svc:agent:acme:other"], "runtime:read").await;
    refused(look_up(&other, "repository", "acme/web").await, 404, "not_found", "acme/web");
    let writer = key(&world, &[AGENT], "runtime:write").await;
    let answer = look_up(&writer, "repository", "acme/web").await;
    refused(answer, 403, "permission_scope_exceeded", "runtime:read");
    let stranger =
        world.app.client(&world.app.api_key("svc:tenant:other", &["runtime:read"]).await);
    refused(look_up(&stranger, "repository", "acme/web").await, 404, "not_found", "github");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_on_a_resource_needs_access_to_it() {
    let world = World::start().await;
    let id = resource(&world, "repository", "acme/web").await;
    let tool = mapped(&world).await;
    let digest = world.tool(&tool).await["mcp"]["definition_digest"].clone();
    let asked = json!({"tool_id": tool, "tool_definition_digest": digest, "resource_id": id});
    assert_eq!(world.reason(asked.clone()).await, "resource_access_missing");
    let grant = json!({"resource_id": id, "grantee_id": AGENT, "grantee_kind": "principal",
        "access_level": "execute"});
    world.app.owner().create_granted_access_to(grant).await.assert_status(201);
    assert_eq!(world.reason(asked).await, "permission_granted");
}
