//! Pins: which tools the client sees, and which calls are asked about.

use serde_json::{Value, json};

use super::world::World;
use crate::mcp::tests::signing::{definition, record};

fn list(world: &mut World) -> Value {
    world.client(&json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"}));
    world.answer().clone()
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_client_sees_pinned_and_granted_tools_in_the_servers_order() {
    let mut world = World::new();
    world.record = Some(record(&["a", "b", "c", "d"]));
    world.record.as_mut().unwrap()["tools"][2]["mcp"]["pin"] = json!("quarantined");
    world.tools = Some(["d", "c", "b", "new", "a"].map(definition).to_vec());
    world.grants.permitted = vec!["mcp.files.*".to_owned()];
    world.grants.denied = vec!["mcp.files.a".to_owned()];
    let answer = list(&mut world);
    assert_eq!(names(&answer), ["d", "b"]);
    assert!(answer["result"].get("ttlMs").is_none());
    // The tool that the service does not know is reported to it.
    assert!(world.observed.contains(&"new".to_owned()));
    world.grants.permitted.clear();
    assert!(names(&list(&mut world)).is_empty());
}

#[test]
fn advice_follows_the_pinned_description() {
    let mut world = World::new();
    let record = world.record.as_mut().unwrap();
    record["tools"][0]["advice"] = json!(["A person approves deletions.", "No secrets."]);
    let answer = list(&mut world);
    let tools = &answer["result"]["tools"];
    let own = definition("touch")["description"].as_str().unwrap().to_owned();
    let expected = format!("{own}\n\nPolicies: A person approves deletions. No secrets.");
    assert_eq!(tools[0]["description"], *expected);
    assert_eq!(tools[1], definition("read"));
    // The call is asked about with the digest of the pinned definition.
    world.call(1, "touch", &json!({}));
    let digest = world.record.as_ref().unwrap()["tools"][0]["mcp"]["definition_digest"].clone();
    assert_eq!(world.asked.last().unwrap().1["tool_definition_digest"], digest);
}

#[test]
fn a_stateless_list_is_private_and_short_lived() {
    let mut world = World::new();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    world.client(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}),
    );
    let result = &world.answer()["result"];
    assert_eq!(
        (&result["cacheScope"], &result["resultType"]),
        (&json!("private"), &json!("complete"))
    );
    assert!(result["ttlMs"].as_u64().is_some_and(|ttl| ttl <= 60_000));
}

#[test]
fn a_changed_text_is_hidden_denied_and_reported() {
    for change in ["description", "title", "_meta", "annotations"] {
        let mut world = World::new();
        let mut changed = definition("touch");
        changed[change] = json!("The tool touch?");
        world.tools = Some(vec![changed, definition("read")]);
        let answer = list(&mut world);
        assert_eq!(names(&answer), ["read"], "{change}");
        assert!(!answer.to_string().contains("touch?"));
        assert_eq!(world.observed, ["touch"]);
        world.call(1, "touch", &json!({}));
        assert!(world.told().contains("tool_definition_changed"));
        assert!(world.asked.is_empty());
        world.assert_nothing_forwarded();
    }
}

#[test]
fn a_change_between_list_and_call_is_noticed() {
    let mut world = World::new();
    assert_eq!(names(&list(&mut world)), ["touch", "read"]);
    world.tools.as_mut().unwrap()[0]["description"] = json!("Sends the file away.");
    world.call(1, "touch", &json!({}));
    assert!(world.told().contains("tool_definition_changed"));
    world.assert_nothing_forwarded();
}

#[test]
fn a_tool_that_is_unpinned_drifted_or_doubled_is_not_asked_about() {
    type Change = (&'static str, fn(&mut World));
    let changes: [Change; 6] = [
        ("capability_quarantined", |world| {
            world.record.as_mut().unwrap()["tools"][0]["mcp"]["pin"] = json!("quarantined");
        }),
        ("capability_quarantined", |world| {
            world.record.as_mut().unwrap()["tools"][0]["mcp"]["pin"] = json!("drifted");
        }),
        ("capability_quarantined", |world| {
            world.record.as_mut().unwrap()["tools"][0]["mcp"]["pin"] = json!("new word");
        }),
        ("capability_quarantined", |world| {
            world.record.as_mut().unwrap()["tools"] = json!([]);
        }),
        ("not in force", |world| {
            world.record.as_mut().unwrap()["state"] = json!("revoked");
        }),
        ("tool_definition_changed", |world| {
            world.tools.as_mut().unwrap().push(definition("touch"));
        }),
    ];
    for (reason, change) in changes {
        let mut world = World::new();
        change(&mut world);
        world.pass(61);
        world.call(1, "touch", &json!({}));
        assert!(world.told().contains(reason), "{reason}: {}", world.told());
        assert!(world.asked.is_empty(), "{reason}");
        world.assert_nothing_forwarded();
    }
}

#[test]
fn an_unknown_tool_is_an_error_of_the_request() {
    let mut world = World::new();
    world.call(1, "absent", &json!({}));
    assert_eq!(world.answer()["error"]["code"], -32602);
    world.assert_nothing_forwarded();
}

#[test]
fn a_server_that_does_not_list_its_tools_gets_no_calls() {
    let mut world = World::new();
    world.tools = None;
    world.call(1, "touch", &json!({}));
    world.client(&json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"}));
    assert!(world.client.is_empty());
    // The list waits for its own request, after the first one.
    world.pass(12);
    assert_eq!(world.client.len(), 2);
    assert_eq!(world.answer()["error"]["code"], -32603);
    world.assert_nothing_forwarded();
}

#[test]
fn without_the_service_there_is_no_list() {
    let mut world = World::new();
    world.record = None;
    assert_eq!(list(&mut world)["error"]["code"], -32603);
}
