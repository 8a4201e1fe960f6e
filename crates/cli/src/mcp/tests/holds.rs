//! Calls that wait for people.

use serde_json::{Value, json};

use super::world::World;
use crate::mcp::{
    decision::{Decision, Hold},
    event::{Event, Outcome},
};

/// A stateless call of a client with these capabilities.
fn stateless(capabilities: &Value, more: &Value) -> Value {
    let mut params = json!({"name": "touch", "arguments": {"path": "a"}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities}});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

fn send(world: &mut World, id: i64, params: &Value) {
    world.client(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
}

fn approval(world: &mut World, state: &str) {
    let call = world.followed.last().unwrap().0;
    world.event(Event::Approval(call, state.to_owned()));
}

#[test]
fn without_a_way_to_wait_the_client_is_told_to_ask_again() {
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    let hold = world.hold();
    assert_eq!(
        world.told(),
        format!("Held for approval. Ask again after it is granted: {}", hold.verify_url)
    );
    let meta = &world.answer()["result"]["_meta"]["agent-authority/hold"];
    let expected = json!({"approval_id": "svc:approval:1", "decision_id": hold.decision_id,
        "verify_url": hold.verify_url, "retry_after_ms": 5000});
    assert_eq!(meta, &expected);
    world.assert_nothing_forwarded();
    // The same call again: its approval is ready, and is cited.
    world.call(2, "touch", &json!({}));
    let ready = Hold { ready_approval_id: Some("svc:approval:1".to_owned()), ..hold };
    world.decide(Decision::Held(ready));
    assert_eq!(world.asked.len(), 3);
    assert_eq!(world.asked[2].1["approval_id"], "svc:approval:1");
    assert_ne!(world.asked[1].2, world.asked[2].2);
    world.permit_and_watch();
    assert_eq!(world.server.len(), 1);
}

#[test]
fn a_hold_that_no_approval_ends_is_said_at_once() {
    for (hold, words) in [
        (
            Hold { reason_code: "reality_revalidation_required".to_owned(), ..Hold::default() },
            "no approval helps",
        ),
        (
            Hold { approval_id: Some("a".to_owned()), nobody_is_eligible: true, ..Hold::default() },
            "no registered person",
        ),
    ] {
        let mut world = World::new();
        send(&mut world, 1, &stateless(&json!({"elicitation": {"url": {}}}), &json!({})));
        world.decide(Decision::Held(hold));
        assert!(world.told().contains(words));
        world.assert_nothing_forwarded();
    }
}

#[test]
fn a_client_with_a_progress_token_waits() {
    let params = json!({"name": "touch", "arguments": {}, "_meta": {"progressToken": "p"}});
    let mut world = World::new();
    send(&mut world, 1, &params);
    let hold = world.hold();
    assert_eq!(world.followed[0].1, hold.decision_id);
    let waiting = format!("waiting for approval svc:approval:1: {}", hold.verify_url);
    assert_eq!(world.warnings, [waiting]);
    world.pass(35);
    let progress: Vec<_> =
        world.client.iter().map(|one| one["params"]["progress"].as_u64().unwrap()).collect();
    assert!(progress.len() == 4 && progress.is_sorted_by(|one, next| one < next), "{progress:?}");
    assert!(world.client.iter().all(|one| one["params"]["progressToken"] == "p"));
    approval(&mut world, "approved");
    assert_eq!(world.asked[1].1["approval_id"], "svc:approval:1");
    world.assert_nothing_forwarded();
    world.permit_and_watch();
    assert_eq!(world.server.len(), 1);
    // Without an approval, the client is told after 50 s.
    let mut world = World::new();
    send(&mut world, 1, &params);
    world.hold();
    world.pass(51);
    assert!(world.told().starts_with("Held for approval."));
    world.assert_nothing_forwarded();
}

#[test]
fn a_definition_that_changes_while_people_decide_is_noticed() {
    let mut world = World::new();
    send(&mut world, 1, &json!({"name": "touch", "arguments": {}, "_meta": {"progressToken": 1}}));
    world.hold();
    world.tools.as_mut().unwrap()[0]["description"] = json!("Other.");
    approval(&mut world, "approved");
    assert!(world.told().contains("tool_definition_changed"));
    world.assert_nothing_forwarded();
}

#[test]
fn what_people_do_not_approve_is_denied() {
    for state in ["declined", "expired", "void", "used"] {
        let mut world = World::new();
        send(&mut world, 1, &json!({"name": "touch", "_meta": {"progressToken": 1}}));
        world.hold();
        approval(&mut world, state);
        assert!(world.told().contains(state));
        world.assert_nothing_forwarded();
    }
}

#[test]
fn a_client_that_shows_links_gets_the_receipt_and_comes_back() {
    let link = json!({"elicitation": {"url": {}}});
    let mut world = World::new();
    send(&mut world, 1, &stateless(&link, &json!({})));
    let hold = world.hold();
    let result = world.answer()["result"].clone();
    assert_eq!(result["resultType"], "input_required");
    let elicited = &result["inputRequests"]["approval"];
    assert_eq!(
        (&elicited["method"], &elicited["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url"))
    );
    assert_eq!(elicited["params"]["url"], hold.verify_url.as_str());
    assert!(world.relay.is_idle());
    // The client's answer to the link is not the approval.
    let later = json!({"requestState": result["requestState"], "inputResponses": {"approval": {"action": "accept"}}});
    send(&mut world, 2, &stateless(&link, &later));
    assert_eq!(world.asked.len(), 1);
    world.assert_nothing_forwarded();
    approval(&mut world, "approved");
    assert_eq!(world.asked[1].1["approval_id"], "svc:approval:1");
    world.permit_and_watch();
    let call = world.forwarded().pop().unwrap();
    assert_eq!(call["id"], 2);
    assert_eq!(call["params"], stateless(&link, &json!({})));
}

#[test]
fn a_stateless_client_polls_nine_times_at_most() {
    let mut world = World::new();
    send(&mut world, 1, &stateless(&json!({}), &json!({})));
    world.hold();
    let mut rounds = 0;
    for id in 2..20 {
        world.pass(50);
        let result = world.answer()["result"].clone();
        if result["resultType"] != "input_required" {
            assert!(world.told().starts_with("Held for approval."));
            break;
        }
        assert!(result.get("inputRequests").is_none());
        rounds += 1;
        let later = json!({"requestState": result["requestState"]});
        send(&mut world, id, &stateless(&json!({}), &later));
    }
    // 7 minutes end before the ninth round.
    assert_eq!(rounds, 8);
    world.assert_nothing_forwarded();
}

#[test]
fn a_state_is_for_its_own_call_and_time_only() {
    let held = |world: &mut World| {
        send(world, 1, &stateless(&json!({"elicitation": {"url": {}}}), &json!({})));
        world.hold();
        world.answer()["result"]["requestState"].as_str().unwrap().to_owned()
    };
    let mut world = World::new();
    let state = held(&mut world);
    let mut forged = state.clone().into_bytes();
    forged[40] = if forged[40] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    let mut swapped = stateless(&json!({}), &json!({ "requestState": state }));
    swapped["arguments"]["path"] = json!("b");
    let mut renamed = stateless(&json!({}), &json!({ "requestState": state }));
    renamed["name"] = json!("read");
    let other = held(&mut World::new());
    for (id, params) in [
        (2, stateless(&json!({}), &json!({ "requestState": forged }))),
        (3, swapped),
        (4, renamed),
        (5, stateless(&json!({}), &json!({ "requestState": other }))),
        (6, stateless(&json!({}), &json!({ "requestState": 7 }))),
    ] {
        send(&mut world, id, &params);
        assert_eq!(world.answer()["error"]["code"], -32602, "{params}");
    }
    world.pass(15 * 60);
    send(&mut world, 7, &stateless(&json!({}), &json!({ "requestState": state })));
    assert_eq!(world.answer()["error"]["code"], -32602);
    assert_eq!(world.asked.len(), 1);
    world.assert_nothing_forwarded();
}

#[test]
fn fifty_returns_of_one_state_only_poll() {
    let mut world = World::new();
    send(&mut world, 1, &stateless(&json!({"elicitation": {"url": {}}}), &json!({})));
    world.hold();
    let state = world.answer()["result"]["requestState"].clone();
    for id in 2..52 {
        send(&mut world, id, &stateless(&json!({}), &json!({ "requestState": state })));
    }
    let calls: Vec<_> = world.followed.iter().map(|(call, _)| *call).collect();
    assert_eq!(calls.len(), 50);
    for call in &calls {
        world.event(Event::Approval(*call, "approved".to_owned()));
    }
    // Each asks with its own key, citing the approval, which the service spends once.
    assert_eq!(world.asked.len(), 51);
    assert!(
        world.asked[1..].iter().all(|(_, question, _)| question["approval_id"] == "svc:approval:1")
    );
    world.permit_and_watch();
    let others: Vec<_> = world.asked[1..50].iter().map(|(call, ..)| *call).collect();
    for call in others {
        let denial = crate::mcp::decision::Denial {
            reason_code: "approval_used".to_owned(),
            sentence: "Denied (approval_used).".to_owned(),
        };
        world.event(Event::Decided(call, Ok(Decision::Denied(denial))));
    }
    assert_eq!(world.server.len(), 1);
    world.server(&json!({"jsonrpc": "2.0", "id": 51, "result": {"content": []}}));
    assert_eq!(world.reports.iter().filter(|report| report.1 == Outcome::Executed).count(), 1);
    assert!(world.relay.is_idle());
}
