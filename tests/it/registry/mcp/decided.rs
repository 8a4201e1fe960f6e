//! Decisions on tools of servers, by every operation, for requests that name the tool and for requests
//! that name none.

use serde_json::{Value, json};

use super::{ACTION, AGENT, TENANT, World, asking, definition, refused};
use crate::evidence::golden;
use crate::support::{
    AUTHORIZE, Answered, BATCH_EVALUATE, EVALUATE, EVALUATE_DECISION, Members, Plain,
    SIMULATE_DECISION, new_policy, new_tool, nothing, only,
};

/// Sends a request to every operation that decides. Returns the operation's name, the decision and
/// the reason code.
async fn by_each_operation(world: &World, more: &Value) -> Vec<(&'static str, Value, Value)> {
    let asked = asking(more);
    let explained = asked.clone().with("explain", true);
    let mut authorize = asked.clone();
    let members = authorize.as_object_mut().unwrap();
    members.remove("subject");
    members.insert("actor".to_owned(), only("entity_id", AGENT));
    let calls = [
        ("evaluate", EVALUATE, asked.clone(), ""),
        ("explain", EVALUATE, explained, ""),
        ("authorize", AUTHORIZE, authorize, ""),
        ("decide", EVALUATE_DECISION, asked.clone(), ""),
        ("batch", BATCH_EVALUATE, json!({"requests": [asked]}), "/results/0/answer"),
        ("simulate", SIMULATE_DECISION, only("request", &asked), ""),
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
        let mut more = nothing();
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
        only("tool_definition_digest", digest),
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
    let plain = new_tool("plain", "f()", &[ACTION]);
    let (_, plain) = world.app.owner().create_tool(plain).await;
    let plain = plain["tool"]["id"].clone();
    let grant = json!({"agent_id": AGENT, "used_id": plain, "used_kind": "tool"});
    let (status, _) = world.app.owner().create_uses(grant).await;
    assert_eq!(status, 201);
    assert_eq!(world.reason(nothing()).await, "permission_granted");
    world.reported(&[definition("create_issue", "")]).await;
    assert_eq!(world.reason(nothing()).await, "capability_quarantined");
    assert_eq!(world.reason(only("tool_id", &plain)).await, "permission_granted");
}

/// The record has the digest, and the decision is made again on its recorded facts after a drift.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_digest_is_sealed_and_an_older_decision_replays() {
    let world = World::start().await;
    let (tool, digest) = world.with_pinned(&definition("create_issue", "a")).await;
    let body = asking(&json!({"tool_id": tool, "tool_definition_digest": digest}));
    let (_, answer) = world.key.evaluate(body).await;
    assert_eq!(answer["decision"], "allow", "{answer:#}");
    let id = answer["decision_id"].as_str().unwrap();
    let (_, found) = world.key.get_decision(id).await;
    assert_eq!(found["record"]["request"]["tool_definition_digest"], digest, "{found:#}");
    world.reported(&[definition("create_issue", "b")]).await;
    world.key.seal_decision(id).await.assert_status(200);
    let replayed = async |mode: &str| {
        let body = json!({"decision_id": id, "mode": mode});
        world.key.mint_replay_proof(body).await.1["result"].clone()
    };
    assert_eq!(replayed("historical_state_snapshot").await, "match");
    assert_eq!(replayed("current_state").await, "mismatch");
    let recorded = json!({"decision_id": id, "against": "recorded"});
    let (_, simulated) = world.admin.simulate_decision(recorded).await;
    assert_eq!(simulated["reason_code"], "permission_granted", "{simulated:#}");
    let (_, simulated) = world.admin.simulate_decision(only("decision_id", id)).await;
    assert_eq!(simulated["reason_code"], "capability_quarantined", "{simulated:#}");
}

/// Sealed decisions on pinned, changed and unpinned definitions are decided again from their bundles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_decisions_on_definitions_replay() {
    let world = World::start().await;
    let sealed = async |more: Value, reason: &str, name: &str| {
        let (_, answer) = world.key.evaluate(asking(&more)).await;
        assert_eq!(answer["reason_code"], reason, "{answer:#}");
        golden::replays(&world.app, answer["decision_id"].as_str().unwrap(), name).await;
    };
    let (tool, digest) = world.with_pinned(&definition("create_issue", "a")).await;
    let named = json!({"tool_id": tool, "tool_definition_digest": digest});
    sealed(named.clone(), "permission_granted", "pinned_definition-1").await;
    sealed(only("tool_id", &tool), "tool_definition_changed", "tool_definition_changed-1").await;
    sealed(nothing(), "tool_definition_changed", "tool_definition_changed-2").await;
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
    let ask = async || world.key.evaluate_with(body.clone(), &key).await;
    let (status, first) = ask().await;
    assert_eq!((status, first["decision"].text()), (200, "allow"), "{first:#}");
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
        assert_eq!(world.admin.pin_tool(tool, only("definition_digest", digest)).await.0, 200);
    };
    let digest = &reported[0]["definition_digest"];
    pin(digest).await;
    let body = asking(&json!({"tool_id": tool, "tool_definition_digest": digest}));
    let (_, held) = world.key.evaluate(body).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let approval = &held["approval_id"];
    let approver = world.app.person(TENANT, "approver", "bob@acme.example");
    approver.approve_approval(approval.as_str().unwrap()).await.assert_status(200);
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
    priced["inputSchema"]["properties"]["price"] = only("type", "number");
    let (tool, digest) = world.with_pinned(&priced).await;
    let with = |arguments: Value| json!({"tool_id": tool, "tool_definition_digest": digest, "context": {"arguments": arguments}});
    let cedar = "forbid (principal, action == Svc::Action::\"mcp.github.create_issue\", resource) \
        when { context.input has arguments && context.input.arguments has price \
               && context.input.arguments.price.greaterThan(decimal(\"5.0\")) };";
    let policy = new_policy("own", cedar).with("name", "price");
    world.app.owner().create_policy(policy).await.assert_status(201);
    for (arguments, reason) in [
        (only("title", "x"), "permission_granted"),
        (json!({"title": "x", "price": 5}), "permission_granted"),
        (json!({"title": "x", "price": 5.25}), "policy_denied"),
        (json!({"title": "x", "price": 6}), "policy_denied"),
        (json!({"title": "x", "price": "6"}), "context_invalid"),
        (json!({"title": "x", "price": 6.12345}), "context_invalid"),
        (only("price", 1), "context_invalid"),
    ] {
        assert_eq!(world.reason(with(arguments.clone())).await, reason, "{arguments}");
    }
}
