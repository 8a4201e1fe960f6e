//! Pins: the permitted people, the definition, the signed act and the event.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TENANT, World, definition, refused};
use crate::support::{Answered, Members, Plain, new_tool, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_newest_seen_definition_is_pinned() {
    let world = World::start().await;
    let first = world.reported(&[definition("create_issue", "a")]).await;
    let second = world.reported(&[definition("create_issue", "b")]).await;
    let id = first[0]["id"].as_str().unwrap();
    let answer = world.pin(id, &first[0]["definition_digest"]).await;
    let newest = second[0]["definition_digest"].as_str().unwrap();
    refused(answer, 409, "transition_not_allowed", newest);
    assert_eq!(world.tool(id).await["mcp"]["pin"], "quarantined");
    world.pin(id, &second[0]["definition_digest"]).await.assert_status(200);
    let tool = world.tool(id).await;
    assert_eq!(
        (tool["mcp"]["pin"].text(), tool["mcp"]["definition_digest"].text()),
        ("pinned", newest)
    );
    assert_eq!(tool["mcp"]["definition"], definition("create_issue", "b"));
    assert_eq!(tool["input_schema"], definition("create_issue", "b")["inputSchema"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admins_of_the_tenant_and_the_owner_pin() {
    let world = World::start().await;
    let reported = world.reported(&[definition("create_issue", "a")]).await;
    let id = reported[0]["id"].as_str().unwrap();
    let body = only("definition_digest", &reported[0]["definition_digest"]);
    let path = format!("/api/v1/app/tools/{id}/pin");
    for role in ["approver", "legal", "auditor", "member", "viewer"] {
        let other = world.app.person(TENANT, role, "other@acme.example");
        refused(other.post(&path, body.clone()).await, 403, "forbidden", "admin");
    }
    let stranger = world.app.person("svc:tenant:other", "admin", "eve@other.example");
    assert_eq!(stranger.post(&path, body.clone()).await.0, 404);
    assert_eq!(world.key.post(&path, body.clone()).await.0, 403);
    let (status, pinned) = world.app.owner().pin_tool(id, body).await;
    assert_eq!((status, pinned["tool"]["mcp"]["pin"].text()), (200, "pinned"), "{pinned:#}");
    let plain = new_tool("t", "f()", &["report.read"]);
    let plain = super::made(&world.admin, "tools", plain).await["id"].clone();
    let answer = world.pin(plain.as_str().unwrap(), &reported[0]["definition_digest"]).await;
    refused(answer, 409, "transition_not_allowed", "no MCP server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tools_with_the_same_action_are_not_both_pinned() {
    let world = World::start().await;
    world.with_pinned(&definition("create_issue", "")).await;
    let other = world.reported(&[definition("Create_Issue", "")]).await;
    let id = other[0]["id"].as_str().unwrap();
    let answer = world.pin(id, &other[0]["definition_digest"]).await;
    refused(answer, 409, "transition_not_allowed", "same action");
}

/// Each pin is a signed act, is kept in the history, and is an event. So is the drift.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pin_is_a_signed_act_and_an_event() {
    let world = World::start().await;
    let (id, first) = world.with_pinned(&definition("create_issue", "a")).await;
    world.reported(&[definition("create_issue", "b")]).await;
    let (_, second) = world.with_pinned(&definition("create_issue", "b")).await;
    let acts = format!(
        "DO $$ BEGIN ASSERT (SELECT count(*) FROM approval_acts WHERE about = '{id}' \
         AND record::jsonb ->> 'verdict' = 'pin' AND length(signature) = 64 \
         AND record::jsonb ->> 'question' IN ('{first}', '{second}')) = 2, 'signed acts'; END $$"
    );
    world.app.database.run(&acts).await;
    let begun = Instant::now();
    let events = loop {
        let found = world.admin.list_events("event_type=svc.tool.*").await.assert_status(200);
        let events = found["events"].as_array().unwrap().clone();
        if events.len() == 3 {
            break events;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{found:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let data = |kind: &str| -> Vec<Value> {
        let of = events.iter().filter(|event| event["event_type"] == kind);
        of.map(|event| event["data"].clone()).collect()
    };
    let pinned = |digest: &str| json!({"tool_id": id, "server_id": world.server, "definition_digest": digest});
    let mut all = data("svc.tool.pinned");
    all.sort_by_key(|data| data["definition_digest"] != json!(first));
    assert_eq!(all, [pinned(&first), pinned(&second)]);
    let drifted = pinned(&first).with("seen_digest", &second);
    assert_eq!(data("svc.tool.drifted"), [drifted]);
}

/// An admin chooses the declaration when a definition is first pinned. Later only the owner makes it
/// milder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_makes_the_declaration_of_a_pinned_tool_no_milder() {
    let world = World::start().await;
    let reported = world.reported(&[definition("create_issue", "a")]).await;
    let id = reported[0]["id"].as_str().unwrap().to_owned();
    let digest = &reported[0]["definition_digest"];
    assert_eq!(world.admin.pin_tool(&id, only("definition_digest", digest)).await.0, 200);
    refused(world.pin(&id, digest).await, 403, "forbidden", "milder");
    let milder = json!({"definition_digest": digest,
        "action_declaration": {"effect_class": "informational", "reversibility": "reversible"}});
    world.app.owner().pin_tool(&id, milder).await.assert_status(200);
}

/// A tool with strict terms for every action of servers binds their tools as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_pins_no_tool_that_avoids_the_terms_of_another_tool() {
    let world = World::start().await;
    let strict = json!({"tenant_id": TENANT, "name": "all servers", "function_signature": "f()",
        "actions": ["mcp.*"], "action_risk_classification": {"risk_tier": "high"}});
    let (status, _) = world.app.owner().create_tool(strict).await;
    assert_eq!(status, 201);
    let reported = world.reported(&[definition("create_issue", "a")]).await;
    let id = reported[0]["id"].as_str().unwrap();
    let answer = world.pin(id, &reported[0]["definition_digest"]).await;
    refused(answer, 403, "forbidden", "milder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_decisions_cannot_check_is_a_warning() {
    let world = World::start().await;
    let mut unusual = definition("create_issue", "");
    unusual["inputSchema"]["properties"]["title"]["pattern"] = "(".into();
    let reported = world.reported(&[unusual]).await;
    let id = reported[0]["id"].as_str().unwrap();
    let pinned = world.pin(id, &reported[0]["definition_digest"]).await.assert_status(200);
    assert_eq!(pinned["tool"]["input_schema"], Value::Null);
    assert!(pinned["tool"]["warnings"].to_string().contains("is not checked"), "{pinned:#}");
}
