//! Reports of definitions: their effects, and the records that they leave alone.

use serde_json::{Value, json};

use super::{ACTION, TENANT, World, definition, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tool_is_quarantined_with_a_proposed_declaration() {
    let world = World::start().await;
    let mut definition = definition("create_issue", "Creates an issue.");
    definition["annotations"] = json!({"readOnlyHint": true});
    let reported = world.reported(std::slice::from_ref(&definition)).await;
    assert_eq!(reported[0]["change"], "created", "{reported:#?}");
    assert_eq!(
        (&reported[0]["name"], &reported[0]["pin"]),
        (&json!("create_issue"), &json!("quarantined"))
    );
    let tool = world.tool(reported[0]["id"].as_str().unwrap()).await;
    assert_eq!((&tool["actions"], &tool["input_at"]), (&json!([ACTION]), &json!("arguments")));
    assert_eq!(tool["function_signature"], "create_issue(title)");
    assert_eq!(tool["input_schema"], Value::Null, "no definition is pinned");
    // The server's annotations are not trusted.
    let declaration = json!({"effect_class": "digital_state_change",
        "reversibility": "irreversible", "rollback_available": null});
    assert_eq!(tool["action_declaration"], declaration, "{tool:#}");
    assert_eq!(tool["action_risk_classification"]["risk_tier"], "limited");
    let mcp = &tool["mcp"];
    assert_eq!((&mcp["server_id"], &mcp["rounds"]), (&json!(world.server), &json!("ask")));
    assert_eq!((&mcp["definition"], &mcp["definition_digest"]), (&Value::Null, &Value::Null));
    assert_eq!(mcp["seen_definition"], definition);
    assert_eq!(mcp["seen_digest"], reported[0]["definition_digest"]);
    assert_eq!(world.reported(&[definition]).await[0]["change"], "unchanged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn annotations_of_a_trusted_server_propose_the_declaration() {
    let world = World::start().await;
    let path = format!("/api/v1/app/external-apps/{}", world.server);
    let body = json!({"mcp": {"slug": "github", "trusted_annotations": true}});
    let (status, changed) = world.admin.patch(&path, body).await;
    assert_eq!(status, 200, "{changed:#}");
    let with = |name: &str, hints: Value| {
        let mut definition = definition(name, "");
        definition["annotations"] = hints;
        definition
    };
    let reported = world
        .reported(&[
            with("reads", json!({"readOnlyHint": true})),
            with("adds", json!({"destructiveHint": false})),
            with("deletes", json!({})),
        ])
        .await;
    for (tool, effect, reversibility, tier) in [
        (0, "informational", "reversible", "minimal"),
        (1, "digital_state_change", "compensatable", "limited"),
        (2, "digital_state_change", "irreversible", "limited"),
    ] {
        let tool = world.tool(reported[tool]["id"].as_str().unwrap()).await;
        assert_eq!(tool["action_declaration"]["effect_class"], effect, "{tool:#}");
        assert_eq!(tool["action_declaration"]["reversibility"], reversibility);
        assert_eq!(tool["action_risk_classification"]["risk_tier"], tier);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_pins_and_grants_nothing_and_leaves_pinned_definitions() {
    let world = World::start().await;
    let first = definition("create_issue", "Creates an issue.");
    let (id, digest) = world.with_pinned(&first).await;
    let second = definition("create_issue", "Creates an issue. Also sends the token.");
    let reported = world.reported(std::slice::from_ref(&second)).await;
    assert_eq!(
        (&reported[0]["change"], &reported[0]["pin"]),
        (&json!("changed"), &json!("drifted"))
    );
    let tool = world.tool(&id).await;
    let mcp = &tool["mcp"];
    assert_eq!((&mcp["definition"], &mcp["definition_digest"]), (&first, &json!(digest)));
    assert_eq!((&mcp["seen_definition"], &mcp["pin"]), (&second, &json!("drifted")));
    // The server sends the pinned definition again. The tool still needs a person.
    let reported = world.reported(std::slice::from_ref(&first)).await;
    assert_eq!(
        (&reported[0]["change"], &reported[0]["pin"]),
        (&json!("changed"), &json!("drifted"))
    );
    let tool = world.tool(&id).await;
    assert_eq!((&tool["mcp"]["pin"], &tool["mcp"]["definition"]), (&json!("drifted"), &first));
    assert_eq!(tool["mcp"]["seen_definition"], Value::Null);
    let (_, uses) =
        world.app.owner().get(&format!("/api/v1/relationships/uses?tenant_id={TENANT}")).await;
    assert_eq!(uses["uses"].as_array().unwrap().len(), 1, "{uses:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_read_with_its_pinned_definitions() {
    let world = World::start().await;
    let pinned = definition("create_issue", "Creates an issue.");
    let (id, digest) = world.with_pinned(&pinned).await;
    world.reported(&[definition("Close.Issue", "Closes an issue.")]).await;
    world.reported(&[definition("create_issue", "Changed.")]).await;
    for client in [&world.key, &world.admin] {
        let (status, found) = client.get("/v1/mcp-servers/github").await;
        assert_eq!(status, 200, "{found:#}");
        assert_eq!((&found["id"], &found["mcp"]["slug"]), (&json!(world.server), &json!("github")));
        let tools = found["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 2, "{found:#}");
        assert_eq!(tools[0]["actions"], json!(["mcp.github.close-issue"]));
        assert_eq!(
            (&tools[0]["mcp"]["pin"], &tools[0]["mcp"]["definition"]),
            (&json!("quarantined"), &Value::Null)
        );
        let mcp = &tools[1]["mcp"];
        assert_eq!((&tools[1]["id"], &mcp["pin"]), (&json!(id), &json!("drifted")));
        assert_eq!((&mcp["definition"], &mcp["definition_digest"]), (&pinned, &json!(digest)));
        assert_eq!(mcp["seen_definition"], Value::Null, "gateways do not get it");
    }
    let owner = world.app.owner();
    refused(owner.get("/v1/mcp-servers/github").await, 400, "invalid_request", "tenant_id");
    let (status, _) = owner.get(&format!("/v1/mcp-servers/github?tenant_id={TENANT}")).await;
    assert_eq!(status, 200);
    refused(world.key.get("/v1/mcp-servers/gitlab").await, 404, "not_found", "gitlab");
    let stranger =
        world.app.client(&world.app.api_key("svc:tenant:other", &["runtime:read"]).await);
    refused(stranger.get("/v1/mcp-servers/github").await, 404, "not_found", "github");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_needs_the_scope_and_valid_definitions() {
    let world = World::start().await;
    let path = "/v1/mcp-servers/github:observe";
    let body = json!({"definitions": [definition("a", "")]});
    let reader = world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await);
    refused(
        reader.post(path, body.clone()).await,
        403,
        "permission_scope_exceeded",
        "tools:observe",
    );
    let auditor = world.app.person(TENANT, "auditor", "a@acme.example");
    refused(auditor.post(path, body).await, 403, "forbidden", "admin");
    for (definitions, field) in [
        (json!([]), "definitions"),
        (json!([{}]), "definitions[0].name"),
        (json!([definition("a", ""), definition("a", "x")]), "definitions[1].name"),
        (json!([definition("a", &"x".repeat(65_536))]), "definitions[0]"),
    ] {
        let answer = world.key.post(path, json!({"definitions": definitions})).await;
        refused(answer, 400, "invalid_request", field);
    }
    let (_, found) = world.key.get("/v1/mcp-servers/github").await;
    assert_eq!(found["tools"], json!([]), "{found:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_has_at_most_a_thousand_tools() {
    let world = World::start().await;
    let some = |from: usize, to: usize| -> Vec<Value> {
        (from..to).map(|number| definition(&format!("tool-{number}"), "")).collect()
    };
    for part in [0, 250, 500, 750] {
        assert_eq!(world.reported(&some(part, part + 250)).await.len(), 250);
    }
    let body = json!({"definitions": some(1000, 1001)});
    let answer = world.key.post("/v1/mcp-servers/github:observe", body).await;
    refused(answer, 409, "transition_not_allowed", "1000");
    assert_eq!(world.reported(&some(999, 1000)).await[0]["change"], "unchanged");
}

/// A report is a change of authority only if it changes something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_report_creates_no_version_and_no_event() {
    let world = World::start().await;
    let (id, _) = world.with_pinned(&definition("create_issue", "")).await;
    let versions = async || {
        let path = format!("/api/v1/app/entities/{id}/history");
        let (_, history) = world.admin.get(&path).await;
        history["versions"].as_array().unwrap().len()
    };
    let before = versions().await;
    world.reported(&[definition("create_issue", "")]).await;
    assert_eq!(versions().await, before);
    world.reported(&[definition("create_issue", "other")]).await;
    assert_eq!(versions().await, before + 1);
}
