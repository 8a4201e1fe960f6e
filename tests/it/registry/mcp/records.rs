//! The records of servers and of their tools, as an admin of the tenant changes them.

use serde_json::{Value, json};

use super::{AGENT, TENANT, World, definition, made, refused, server};
use crate::support::{Answered, Members, Plain, new_tool, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_adds_only_servers_with_actions_of_their_own() {
    let world = World::start().await;
    let (_, found) = world.admin.get_external_app(&world.server).await;
    let app = &found["external_app"];
    assert_eq!(app["actions"].texts(), ["mcp.github.*"], "{app:#}");
    let with = |more: Value| server("gitlab").and(&more);
    for body in [
        with(only("actions", ["payment.*"])),
        with(only("actions", ["mcp.*"])),
        with(only("actions", ["mcp.gitlabs.a"])),
        with(only("mcp", Value::Null)),
    ] {
        refused(world.admin.create_external_app(body).await, 403, "forbidden", "MCP servers");
    }
    let other = with(only("connector_kind", "rest"));
    refused(world.admin.create_external_app(other).await, 400, "invalid_request", "connector_kind");
    let same = world.admin.create_external_app(server("github")).await;
    refused(same, 409, "already_exists", "mcp.slug");
    let own = with(only("actions", ["mcp.gitlab.merge"]));
    made(&world.admin, "external-apps", own).await;
    // Another tenant may use the same slug.
    let foreign = server("github").with("tenant_id", "svc:tenant:other");
    let other = world.app.person("svc:tenant:other", "admin", "eve@other.example");
    assert_eq!(other.create_external_app(foreign).await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_changes_no_actions_and_nobody_a_slug() {
    let world = World::start().await;
    let path = format!("/external-apps/{}", world.server);
    let [app, api] = ["/api/v1/app", "/api/v1"].map(|surface| format!("{surface}{path}"));
    refused(world.admin.patch(&app, only("actions", ["*"])).await, 403, "forbidden", "actions");
    for mcp in [only("slug", "gitlab"), Value::Null] {
        let answer = world.app.owner().patch(&api, only("mcp", &mcp)).await;
        refused(answer, 400, "invalid_request", "mcp.slug");
    }
    let settings = json!({"mcp": {"slug": "github", "other_methods": {"resources": "deny"}}});
    let changed = world.admin.patch(&app, settings).await.assert_status(200);
    assert_eq!(changed["external_app"]["mcp"]["other_methods"]["resources"], "deny");
    let (_, found) = world.key.get_mcp_server("github").await;
    assert_eq!(found["mcp"]["other_methods"]["resources"], "deny", "{found:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_grants_only_servers() {
    let world = World::start().await;
    let app = json!({"tenant_id": TENANT, "vendor_name": "crm", "connector_kind": "rest",
        "actions": ["crm.*"]});
    let (_, app) = world.app.owner().create_external_app(app).await;
    let wide = json!({"tenant_id": TENANT, "vendor_name": "w", "connector_kind": "mcp",
        "mcp": {"slug": "wide"}, "actions": ["*"]});
    let (_, wide) = world.app.owner().create_external_app(wide).await;
    for (used_id, used_kind) in [
        (&json!("payment.*"), "action"),
        (&json!("mcp.github.*"), "action"),
        (&app["external_app"]["id"], "external_app"),
        (&wide["external_app"]["id"], "external_app"),
    ] {
        let body = json!({"agent_id": AGENT, "used_id": used_id, "used_kind": used_kind});
        refused(world.admin.create_uses(body).await, 403, "forbidden", "MCP servers");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_changes_only_the_parts_for_gateways() {
    let world = World::start().await;
    let (id, digest) = world.with_pinned(&definition("create_issue", "a")).await;
    let [app, api] = ["/api/v1/app", "/api/v1"].map(|surface| format!("{surface}/tools/{id}"));
    let map = json!({"mcp": {"rounds": "refuse", "redact": ["/token"], "context_map": {
        "amount": {"pointer": "/price", "scale": 2}, "currency": "/currency",
        "resource": {"kind": "repository", "pointer": "/repo"}}}});
    world.admin.patch(&app, map).await.assert_status(200);
    let mcp = world.tool(&id).await["mcp"].clone();
    assert_eq!((mcp["rounds"].text(), mcp["redact"].texts()), ("refuse", vec!["/token"]));
    assert_eq!(mcp["context_map"]["amount"], json!({"pointer": "/price", "scale": 2}));
    assert_eq!((mcp["pin"].text(), mcp["definition_digest"].text()), ("pinned", digest.as_str()));
    // A client may send back all that it has read.
    world.admin.patch(&app, only("mcp", &mcp)).await.assert_status(200);
    let other = format!("sha256:{}", "0".repeat(64));
    for (body, field) in [
        (json!({"mcp": {"pin": "quarantined"}}), "mcp.pin"),
        (json!({"mcp": {"definition_digest": other}}), "mcp.definition_digest"),
        (json!({"mcp": {"seen_digest": other}}), "mcp.seen_digest"),
        (json!({"mcp": {"name": "other"}}), "mcp.name"),
        (json!({"mcp": {"server_id": "other"}}), "mcp.server_id"),
        (only("mcp", Value::Null), "mcp"),
        (json!({"input_schema": {"type": "object"}}), "input_schema"),
        (json!({"mcp": {"redact": ["token"]}}), "mcp.redact[0]"),
    ] {
        for (client, path) in [(&world.admin, &app), (&world.app.owner(), &api)] {
            refused(client.patch(path, body.clone()).await, 400, "invalid_request", field);
        }
    }
    assert_eq!(world.tool(&id).await["mcp"]["pin"], "pinned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_of_a_server_is_created_without_a_report() {
    let world = World::start().await;
    let body = json!({"tenant_id": TENANT, "name": "t", "function_signature": "f()",
        "actions": ["mcp.github.t"], "mcp": {"server_id": world.server, "name": "t",
        "pin": "pinned", "definition_digest": format!("sha256:{}", "0".repeat(64))}});
    for (client, path) in
        [(&world.admin, "/api/v1/app/tools"), (&world.app.owner(), "/api/v1/tools")]
    {
        refused(client.post(path, body.clone()).await, 400, "invalid_request", "mcp");
    }
    let plain = new_tool("t", "f()", &["report.read"]);
    let id = made(&world.admin, "tools", plain).await["id"].as_str().unwrap().to_owned();
    let answer = world.admin.update_tool(&id, json!({"mcp": {"rounds": "pass"}})).await;
    refused(answer, 400, "invalid_request", "mcp");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_listed_by_server_and_pin() {
    let world = World::start().await;
    world.with_pinned(&definition("create_issue", "a")).await;
    world.reported(&[definition("close_issue", "a")]).await;
    let names = async |filter: &str| -> Vec<Value> {
        let found = world.admin.list_tools(filter).await.assert_status(200);
        let tools = found["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["mcp"]["name"].clone()).collect()
    };
    let all = format!("server_id={}", world.server);
    assert_eq!(names(&all).await, ["create_issue", "close_issue"]);
    assert_eq!(names(&format!("{all}&pin=quarantined")).await, ["close_issue"]);
    assert_eq!(names("pin=pinned").await, ["create_issue"]);
    assert!(names("pin=drifted").await.is_empty());
    assert!(names("server_id=svc:ent:acme:external_app:0").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_external_id_is_unique_among_resources_of_a_kind() {
    let world = World::start().await;
    let resource = |kind: &str, external_id: &str| json!({"tenant_id": TENANT, "kind": kind, "name": "r", "external_id": external_id});
    let first = made(&world.admin, "resources", resource("repository", "acme/web")).await;
    assert_eq!(first["external_id"], "acme/web");
    let collection = "/api/v1/app/resources";
    let same = world.admin.post(collection, resource("repository", "acme/web")).await;
    refused(same, 409, "already_exists", "external_id");
    made(&world.admin, "resources", resource("board", "acme/web")).await;
    made(&world.admin, "resources", resource("repository", "acme/app")).await;
    let long = world.admin.post(collection, resource("repository", &"x".repeat(301))).await;
    refused(long, 400, "invalid_request", "external_id");
    let path = format!("{collection}?kind=repository&external_id=acme/web");
    let (_, found) = world.admin.get(&path).await;
    assert_eq!(found["resources"].as_array().unwrap().len(), 1, "{found:#}");
    assert_eq!(found["resources"][0]["id"], first["id"]);
}
