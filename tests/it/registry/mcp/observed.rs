//! Reports of definitions: their effects, and the records that they leave alone.

use serde_json::{Value, json};

use super::{ACTION, TENANT, World, definition, refused};
use crate::support::{Answered, Members, Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tool_is_quarantined_with_a_proposed_declaration() {
    let world = World::start().await;
    let definition = definition("create_issue", "Creates an issue.")
        .with("annotations", only("readOnlyHint", true));
    let reported = world.reported(std::slice::from_ref(&definition)).await;
    assert_eq!(reported[0]["change"], "created", "{reported:#?}");
    assert_eq!(
        (reported[0]["name"].text(), reported[0]["pin"].text()),
        ("create_issue", "quarantined")
    );
    let tool = world.tool(reported[0]["id"].as_str().unwrap()).await;
    assert_eq!((tool["actions"].texts(), tool["input_at"].text()), (vec![ACTION], "arguments"));
    assert_eq!(tool["function_signature"], "create_issue(title)");
    assert_eq!(tool["input_schema"], Value::Null, "no definition is pinned");
    // The server's annotations are not trusted.
    let declaration = json!({"effect_class": "digital_state_change",
        "reversibility": "irreversible", "rollback_available": null});
    assert_eq!(tool["action_declaration"], declaration, "{tool:#}");
    assert_eq!(tool["action_risk_classification"]["risk_tier"], "limited");
    let mcp = &tool["mcp"];
    assert_eq!((&mcp["server_id"], mcp["rounds"].text()), (&json!(world.server), "ask"));
    assert_eq!((&mcp["definition"], &mcp["definition_digest"]), (&Value::Null, &Value::Null));
    assert_eq!(mcp["seen_definition"], definition);
    assert_eq!(mcp["seen_digest"], reported[0]["definition_digest"]);
    assert_eq!(world.reported(&[definition]).await[0]["change"], "unchanged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn annotations_of_a_trusted_server_propose_the_declaration() {
    let world = World::start().await;
    let body = json!({"mcp": {"slug": "github", "trusted_annotations": true}});
    world.admin.update_external_app(&world.server, body).await.assert_status(200);
    let with = |name: &str, hints: Value| definition(name, "").with("annotations", hints);
    let reported = world
        .reported(&[
            with("reads", only("readOnlyHint", true)),
            with("adds", only("destructiveHint", false)),
            with("deletes", nothing()),
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
    assert_eq!((reported[0]["change"].text(), reported[0]["pin"].text()), ("changed", "drifted"));
    let tool = world.tool(&id).await;
    let mcp = &tool["mcp"];
    assert_eq!((&mcp["definition"], mcp["definition_digest"].text()), (&first, digest.as_str()));
    assert_eq!((&mcp["seen_definition"], mcp["pin"].text()), (&second, "drifted"));
    // The server sends the pinned definition again. The tool still needs a person.
    let reported = world.reported(std::slice::from_ref(&first)).await;
    assert_eq!((reported[0]["change"].text(), reported[0]["pin"].text()), ("changed", "drifted"));
    let tool = world.tool(&id).await;
    assert_eq!((tool["mcp"]["pin"].text(), &tool["mcp"]["definition"]), ("drifted", &first));
    assert_eq!(tool["mcp"]["seen_definition"], Value::Null);
    let (_, uses) = world.app.owner().list_uses(&format!("tenant_id={TENANT}")).await;
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
        let found = client.get_mcp_server("github").await.assert_status(200);
        assert_eq!((&found["id"], found["mcp"]["slug"].text()), (&json!(world.server), "github"));
        let tools = found["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 2, "{found:#}");
        assert_eq!(tools[0]["actions"].texts(), ["mcp.github.close-issue"]);
        assert_eq!(
            (tools[0]["mcp"]["pin"].text(), &tools[0]["mcp"]["definition"]),
            ("quarantined", &Value::Null)
        );
        let mcp = &tools[1]["mcp"];
        assert_eq!((tools[1]["id"].text(), mcp["pin"].text()), (id.as_str(), "drifted"));
        assert_eq!(
            (&mcp["definition"], mcp["definition_digest"].text()),
            (&pinned, digest.as_str())
        );
        assert_eq!(mcp["seen_definition"], Value::Null, "gateways do not get it");
    }
    let owner = world.app.owner();
    refused(owner.get_mcp_server("github").await, 400, "invalid_request", "tenant_id");
    let (status, _) = owner.get(&format!("/v1/mcp-servers/github?tenant_id={TENANT}")).await;
    assert_eq!(status, 200);
    refused(world.key.get_mcp_server("gitlab").await, 404, "not_found", "gitlab");
    let stranger =
        world.app.client(&world.app.api_key("svc:tenant:other", &["runtime:read"]).await);
    refused(stranger.get_mcp_server("github").await, 404, "not_found", "github");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_needs_the_scope_and_valid_definitions() {
    let world = World::start().await;
    let body = json!({"definitions": [definition("a", "")]});
    let reader = world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await);
    refused(
        reader.observe_mcp_server("github", body.clone()).await,
        403,
        "permission_scope_exceeded",
        "tools:observe",
    );
    let auditor = world.app.person(TENANT, "auditor", "a@acme.example");
    refused(auditor.observe_mcp_server("github", body).await, 403, "forbidden", "admin");
    for (definitions, field) in [
        (json!([]), "definitions"),
        (json!([{}]), "definitions[0].name"),
        (json!([definition("a", ""), definition("a", "x")]), "definitions[1].name"),
        (json!([definition("a", &"x".repeat(65_536))]), "definitions[0]"),
    ] {
        let answer =
            world.key.observe_mcp_server("github", only("definitions", &definitions)).await;
        refused(answer, 400, "invalid_request", field);
    }
    let (_, found) = world.key.get_mcp_server("github").await;
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
    let body = only("definitions", some(1000, 1001));
    let answer = world.key.observe_mcp_server("github", body).await;
    refused(answer, 409, "transition_not_allowed", "1000");
    assert_eq!(world.reported(&some(999, 1000)).await[0]["change"], "unchanged");
}

/// A report is a change of authority only if it changes something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_report_creates_no_version_and_no_event() {
    let world = World::start().await;
    let (id, _) = world.with_pinned(&definition("create_issue", "")).await;
    let versions = async || {
        let (_, history) = world.admin.list_entity_history(&id, "").await;
        history["versions"].as_array().unwrap().len()
    };
    let before = versions().await;
    world.reported(&[definition("create_issue", "")]).await;
    assert_eq!(versions().await, before);
    world.reported(&[definition("create_issue", "other")]).await;
    assert_eq!(versions().await, before + 1);
}
