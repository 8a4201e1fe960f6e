//! Decisions on tools of servers, by every operation, for requests that name the tool and for requests
//! that name none.

use serde_json::{Value, json};

use super::{ACTION, AGENT, TENANT, World, asking, definition, refused};
use crate::evidence::golden;

/// Sends a request to every operation that decides. Returns the operation's name, the decision and
/// the reason code.
async fn by_each_operation(world: &World, more: &Value) -> Vec<(&'static str, Value, Value)> {
    let asked = asking(more);
    let mut explained = asked.clone();
    explained["explain"] = json!(true);
    let mut authorize = asked.clone();
    let members = authorize.as_object_mut().unwrap();
    members.remove("subject");
    members.insert("actor".to_owned(), json!({"entity_id": AGENT}));
    let calls = [
        ("evaluate", "/api/v1/runtime/evaluate", asked.clone(), ""),
        ("explain", "/api/v1/runtime/evaluate", explained, ""),
        ("authorize", "/v1/runtime/authorize", authorize, ""),
        ("decide", "/v1/decisions/evaluate", asked.clone(), ""),
        ("batch", "/v1/decisions:batchEvaluate", json!({"requests": [asked]}), "/results/0/answer"),
        ("simulate", "/v1/decisions:simulate", json!({"request": asked}), ""),
    ];
    let mut found = Vec::new();
    for (name, path, body, at) in calls {
        let (status, answer) = world.key.post(path, body).await;
        assert_eq!(status, 200, "{name}: {answer:#}");
        let answer = answer.pointer(at).unwrap();
        found.push((name, answer["decision"].clone(), answer["reason_code"].clone()));
    }
    found
}

/// Checks that every operation denies for this reason, whether the request names the tool or not.
async fn denied(world: &World, tool: &str, digest: Option<&str>, reason: &str) {
    for named in [Some(tool), None] {
        let mut more = json!({});
        if let Some(tool) = named {
            more["tool_id"] = json!(tool);
        }
        if let Some(digest) = digest {
            more["tool_definition_digest"] = json!(digest);
        }
        for (name, decision, found) in by_each_operation(world, &more).await {
            assert_eq!((decision, found), (json!("deny"), json!(reason)), "{name} {more}");
        }
    }
}

async fn permitted(world: &World, tool: &str, digest: &str) {
    for more in [
        json!({"tool_definition_digest": digest}),
        json!({"tool_definition_digest": digest, "tool_id": tool}),
    ] {
        for (name, decision, reason) in by_each_operation(world, &more).await {
            assert_eq!(reason, "permission_granted", "{name} {more}");
            assert_ne!(decision, "deny");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_permitted_only_while_it_is_pinned_and_with_its_digest() {
    let world = World::start().await;
    let first = definition("create_issue", "Creates an issue.");
    let reported = world.reported(std::slice::from_ref(&first)).await;
    let tool = reported[0]["id"].as_str().unwrap().to_owned();
    let seen = reported[0]["definition_digest"].as_str().unwrap();
    denied(&world, &tool, Some(seen), "capability_quarantined").await;
    denied(&world, &tool, None, "capability_quarantined").await;

    let (_, digest) = world.with_pinned(&first).await;
    permitted(&world, &tool, &digest).await;
    denied(&world, &tool, None, "tool_definition_changed").await;
    let other = format!("sha256:{}", "0".repeat(64));
    denied(&world, &tool, Some(&other), "tool_definition_changed").await;

    let second = definition("create_issue", "Creates an issue. ");
    let reported = world.reported(std::slice::from_ref(&second)).await;
    let changed = reported[0]["definition_digest"].as_str().unwrap();
    denied(&world, &tool, Some(&digest), "capability_quarantined").await;
    denied(&world, &tool, Some(changed), "capability_quarantined").await;

    let (_, newest) = world.with_pinned(&second).await;
    assert_eq!(newest, changed);
    permitted(&world, &tool, &newest).await;
    denied(&world, &tool, Some(&digest), "tool_definition_changed").await;
}

/// A request that names another tool for the action is decided by that tool alone. A request that
/// names none is denied, although the agent has a grant of the other tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_of_another_tool_does_not_free_the_action() {
    let world = World::start().await;
    let plain = json!({"tenant_id": TENANT, "name": "plain", "function_signature": "f()",
        "actions": [ACTION]});
    let (_, plain) = world.app.owner().post("/api/v1/tools", plain).await;
    let plain = plain["tool"]["id"].clone();
    let grant = json!({"agent_id": AGENT, "used_id": plain, "used_kind": "tool"});
    let (status, _) = world.app.owner().post("/api/v1/relationships/uses", grant).await;
    assert_eq!(status, 201);
    assert_eq!(world.reason(json!({})).await, "permission_granted");
    world.reported(&[definition("create_issue", "")]).await;
    assert_eq!(world.reason(json!({})).await, "capability_quarantined");
    assert_eq!(world.reason(json!({"tool_id": plain})).await, "permission_granted");
}

/// The record has the digest, and the decision is made again on its recorded facts after a drift.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_digest_is_sealed_and_an_older_decision_replays() {
    let world = World::start().await;
    let (tool, digest) = world.with_pinned(&definition("create_issue", "a")).await;
    let body = asking(&json!({"tool_id": tool, "tool_definition_digest": digest}));
    let (_, answer) = world.key.post("/api/v1/runtime/evaluate", body).await;
    assert_eq!(answer["decision"], "allow", "{answer:#}");
    let id = answer["decision_id"].as_str().unwrap();
    let (_, found) = world.key.get(&format!("/v1/decisions/{id}")).await;
    assert_eq!(found["record"]["request"]["tool_definition_digest"], json!(digest), "{found:#}");
    world.reported(&[definition("create_issue", "b")]).await;
    let (status, sealed) = world.key.post("/v1/evidence/seal", json!({"decision_id": id})).await;
    assert_eq!(status, 200, "{sealed:#}");
    let replayed = async |mode: &str| {
        let body = json!({"decision_id": id, "mode": mode});
        world.key.post("/v1/replay/proof", body).await.1["result"].clone()
    };
    assert_eq!(replayed("historical_state_snapshot").await, "match");
    assert_eq!(replayed("current_state").await, "mismatch");
    let recorded = json!({"decision_id": id, "against": "recorded"});
    let (_, simulated) = world.admin.post("/api/v1/app/decisions:simulate", recorded).await;
    assert_eq!(simulated["reason_code"], "permission_granted", "{simulated:#}");
    let present = json!({"decision_id": id});
    let (_, simulated) = world.admin.post("/api/v1/app/decisions:simulate", present).await;
    assert_eq!(simulated["reason_code"], "capability_quarantined", "{simulated:#}");
}

/// Sealed decisions on pinned, changed and unpinned definitions are decided again from their bundles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_decisions_on_definitions_replay() {
    let world = World::start().await;
    let sealed = async |more: Value, reason: &str, name: &str| {
        let (_, answer) = world.key.post("/api/v1/runtime/evaluate", asking(&more)).await;
        assert_eq!(answer["reason_code"], reason, "{answer:#}");
        golden::replays(&world.app, answer["decision_id"].as_str().unwrap(), name).await;
    };
    let (tool, digest) = world.with_pinned(&definition("create_issue", "a")).await;
    let named = json!({"tool_id": tool, "tool_definition_digest": digest});
    sealed(named.clone(), "permission_granted", "pinned_definition-1").await;
    sealed(json!({"tool_id": tool}), "tool_definition_changed", "tool_definition_changed-1").await;
    sealed(json!({}), "tool_definition_changed", "tool_definition_changed-2").await;
    world.reported(&[definition("create_issue", "b")]).await;
    sealed(named, "capability_quarantined", "drifted_definition-1").await;
}

/// An allow is not repeated under its idempotency key after a drift.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_after_a_drift_is_denied() {
    let world = World::start().await;
    let (tool, digest) = world.with_pinned(&definition("create_issue", "a")).await;
    let body = asking(&json!({"tool_id": tool, "tool_definition_digest": digest}));
    let key = [("idempotency-key", "one")];
    let ask =
        async || world.key.call("POST", "/api/v1/runtime/evaluate", Some(body.clone()), &key).await;
    let (status, first) = ask().await;
    assert_eq!((status, &first["decision"]), (200, &json!("allow")), "{first:#}");
    assert_eq!(ask().await.1["decision_id"], first["decision_id"]);
    world.reported(&[definition("create_issue", "b")]).await;
    refused(ask().await, 409, "decision_stopped", "capability_quarantined");
}

/// An approval is for the definition that the request had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_of_no_use_after_the_definition_changed() {
    let world = World::start().await;
    let first = definition("create_issue", "a");
    let reported = world.reported(std::slice::from_ref(&first)).await;
    let tool = reported[0]["id"].as_str().unwrap();
    let pin = async |digest: &Value| {
        // The proposed declaration needs one approver.
        let body = json!({"definition_digest": digest});
        let path = format!("/api/v1/app/tools/{tool}/pin");
        assert_eq!(world.admin.post(&path, body).await.0, 200);
    };
    let digest = &reported[0]["definition_digest"];
    pin(digest).await;
    let body = asking(&json!({"tool_id": tool, "tool_definition_digest": digest}));
    let (_, held) = world.key.post("/api/v1/runtime/evaluate", body).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let approval = &held["approval_id"];
    let approver = world.app.person(TENANT, "approver", "bob@acme.example");
    let path = format!("/api/v1/app/approvals/{}/approve", approval.as_str().unwrap());
    let (status, approved) = approver.post(&path, json!({})).await;
    assert_eq!(status, 200, "{approved:#}");
    let second = world.reported(&[definition("create_issue", "b")]).await;
    let citing = |digest: &Value| json!({"tool_id": tool, "tool_definition_digest": digest, "approval_id": approval});
    assert_eq!(world.reason(citing(digest)).await, "capability_quarantined");
    let newest = &second[0]["definition_digest"];
    pin(newest).await;
    assert_eq!(world.reason(citing(digest)).await, "tool_definition_changed");
    let (decision, _) = world.decided(citing(newest)).await;
    assert_eq!(decision, "require_approval", "the approval is for another question");
}

/// The pinned schema types the arguments, and its numbers are decimals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_describes_arguments_with_decimals() {
    let world = World::start().await;
    let mut priced = definition("create_issue", "");
    priced["inputSchema"]["properties"]["price"] = json!({"type": "number"});
    let (tool, digest) = world.with_pinned(&priced).await;
    let with = |arguments: Value| json!({"tool_id": tool, "tool_definition_digest": digest, "context": {"arguments": arguments}});
    let cedar = "forbid (principal, action == Svc::Action::\"mcp.github.create_issue\", resource) \
        when { context.input has arguments && context.input.arguments has price \
               && context.input.arguments.price.greaterThan(decimal(\"5.0\")) };";
    let policy = json!({"tenant_id": TENANT, "regime": "own", "name": "price", "cedar": cedar});
    let (status, made) = world.app.owner().post("/api/v1/policies", policy).await;
    assert_eq!(status, 201, "{made:#}");
    for (arguments, reason) in [
        (json!({"title": "x"}), "permission_granted"),
        (json!({"title": "x", "price": 5}), "permission_granted"),
        (json!({"title": "x", "price": 5.25}), "policy_denied"),
        (json!({"title": "x", "price": 6}), "policy_denied"),
        (json!({"title": "x", "price": "6"}), "context_invalid"),
        (json!({"title": "x", "price": 6.12345}), "context_invalid"),
        (json!({"price": 1}), "context_invalid"),
    ] {
        assert_eq!(world.reason(with(arguments.clone())).await, reason, "{arguments}");
    }
}
