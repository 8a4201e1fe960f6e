//! The table of methods, in both directions.

use serde_json::{Value, json};

use super::world::World;
use crate::mcp::event::Event;

fn request(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": "file:///a"}})
}

#[test]
fn harmless_methods_pass_and_unknown_ones_are_denied() {
    for method in
        ["initialize", "ping", "logging/setLevel", "server/discover", "subscriptions/listen"]
    {
        let mut world = World::new();
        world.client(&request(method));
        assert_eq!(world.forwarded(), [request(method)]);
        assert!(world.client.is_empty());
    }
    for method in [
        "tools/delete",
        "tasks/get",
        "tasks/result",
        "resource/read",
        "resources",
        "x",
        "roots/list",
    ] {
        let mut world = World::new();
        world.client(&request(method));
        assert_eq!(world.answer()["error"]["code"], -32601, "{method}");
        assert!(world.server.is_empty());
    }
    for (method, passes) in
        [("notifications/roots/list_changed", true), ("tools/call", false), ("x", false)]
    {
        let mut world = World::new();
        world.client(&json!({"jsonrpc": "2.0", "method": method, "params": {"name": "touch"}}));
        assert_eq!(world.server.len(), usize::from(passes), "{method}");
    }
}

#[test]
fn other_methods_are_decided_unless_the_record_says_otherwise() {
    for (method, group) in [
        ("resources/read", "resources"),
        ("resources/list", "resources"),
        ("prompts/get", "prompts"),
        ("completion/complete", "completion"),
    ] {
        let mut world = World::new();
        world.client(&request(method));
        let action = format!("mcp.files.{}", method.replace('/', "."));
        assert_eq!(world.asked[0].1["action"], action.as_str());
        world.deny("Denied (policy_denied).");
        assert_eq!(world.answer()["error"]["code"], -32001);
        assert!(world.server.is_empty());
        world.client(&request(method));
        world.permit_and_watch();
        assert_eq!(world.forwarded(), [request(method)]);
        for (word, passes) in [("allow", true), ("deny", false), ("other", false)] {
            let mut world = World::new();
            world.record.as_mut().unwrap()["mcp"]["other_methods"] = json!({ group: word });
            world.pass(61);
            world.call(9, "touch", &json!({}));
            world.client(&request(method));
            assert_eq!(world.server.len(), usize::from(passes), "{method} {word}");
        }
    }
}

#[test]
fn a_broken_call_is_refused_before_anything_is_asked() {
    for params in [
        json!({}),
        json!({"name": 7}),
        json!({"name": "touch", "arguments": []}),
        json!({"name": "touch", "task": {}}),
        json!({"name": "touch", "requestState": "forged"}),
        json!({"name": "touch", "inputResponses": {}}),
    ] {
        let mut world = World::new();
        world.client(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        assert_eq!(world.answer()["error"]["code"], -32602, "{params}");
        assert!(world.asked.is_empty() && world.server.is_empty());
    }
    let mut world = World::new();
    world.event(Event::Client(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.to_vec()));
    assert_eq!(world.answer()["error"]["code"], -32600);
    assert!(world.server.is_empty());
}

#[test]
fn the_server_asks_the_client_only_what_is_allowed() {
    let ask = |method: &str| json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": {}});
    for (method, passes) in [
        ("ping", true),
        ("sampling/createMessage", false),
        ("roots/list", false),
        ("elicitation/create", false),
        ("x", false),
    ] {
        let mut world = World::new();
        world.server(&ask(method));
        assert_eq!(world.client.len(), usize::from(passes), "{method}");
        assert_eq!(world.server.len(), usize::from(!passes), "{method}");
    }
    let mut world = World::new();
    world.record.as_mut().unwrap()["mcp"]["other_methods"] = json!({"sampling": "allow"});
    world.pass(61);
    world.call(1, "touch", &json!({}));
    world.server(&ask("sampling/createMessage"));
    assert_eq!(world.answer()["method"], "sampling/createMessage");
    // An answer that no request waits for does not reach the server.
    let answer = |id: &str| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    world.client(&answer("other"));
    assert!(world.server.is_empty());
    world.client(&answer("s"));
    assert_eq!(world.forwarded(), [answer("s")]);
}

#[test]
fn what_the_server_sends_unasked_is_dropped() {
    let mut world = World::new();
    world.server(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    world.event(Event::Server(b"starting...".to_vec()));
    world.event(Event::Server(br#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#.to_vec()));
    world.event(Event::Server(b"[]".to_vec()));
    world.event(Event::Server(b"\"\xff\"".to_vec()));
    world.server(&json!({"jsonrpc": "2.0", "method": "other"}));
    assert!(world.client.is_empty());
    world.server(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
    assert_eq!(world.client.len(), 1);
}

#[test]
fn a_message_of_the_server_that_clients_may_read_differently_is_dropped() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{"tools":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"method":"notifications/x","result":{}}"#,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":\r{}\r}}",
    ] {
        let mut world = World::new();
        world.event(Event::Server(text.as_bytes().to_vec()));
        assert!(world.client.is_empty(), "{text}");
        // A request that passed undecided gets an error instead.
        world.client(&request("ping"));
        let id = request("ping")["id"].clone();
        world.event(Event::Server(text.replace(":1,", &format!(":{id},")).into_bytes()));
        let answers = world.client.iter().map(ToString::to_string).collect::<String>();
        assert!(!answers.contains("tools"), "{text}: {answers}");
    }
}

#[test]
fn a_server_that_is_not_active_gets_no_undecided_method() {
    let mut world = World::new();
    let record = world.record.as_mut().unwrap();
    record["state"] = json!("suspended");
    record["mcp"]["other_methods"] = json!({"resources": "allow", "sampling": "allow"});
    world.pass(61);
    world.call(9, "touch", &json!({}));
    world.client(&request("resources/read"));
    world.server(
        &json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {}}),
    );
    let passed = world.client.iter().any(|line| line.to_string().contains("sampling"));
    assert!(!passed && !world.forwarded().iter().any(|line| line["method"] == "resources/read"));
}

#[test]
fn only_pinned_instructions_reach_the_client() {
    let digest = crate::mcp::instructions_digest("Be kind.");
    for (pinned, text, shown) in [
        (None, "Be kind.", false),
        (Some(&digest), "Be kind.", true),
        (Some(&digest), "Be evil.", false),
    ] {
        let mut world = World::new();
        world.record.as_mut().unwrap()["mcp"]["instructions_digest"] = json!(pinned);
        world.pass(61);
        world.call(9, "touch", &json!({}));
        world.client(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
        let result = json!({"protocolVersion": "2025-11-25", "instructions": text,
            "capabilities": {"tools": {}, "tasks": {"list": {}}}, "x": 1});
        world.server(&json!({"jsonrpc": "2.0", "id": 1, "result": result}));
        let result = &world.answer()["result"];
        assert_eq!(result.get("instructions").is_some(), shown, "{text}");
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        assert_eq!(result["x"], 1);
    }
}
