//! Later rounds: the client's input for a permitted call is decided again.

use serde_json::{Value, json};

use super::world::World;
use crate::mcp::{
    event::{Event, Outcome},
    tests::signing::definition,
};

fn params(more: &Value) -> Value {
    let mut params = json!({"name": "touch", "arguments": {"amount": 1}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

fn send(world: &mut World, id: i64, more: &Value) {
    let message =
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params(more)});
    world.client(&message);
}

/// Lets the server ask for an amount. Returns the sealed state.
fn asks_for_amount(world: &mut World, id: i64) -> Value {
    let request = json!({"method": "elicitation/create", "params": {"message": "How much?"}});
    let result = json!({"resultType": "input_required", "inputRequests": {"amount": request}, "requestState": "theirs"});
    world.server(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let told = world.answer()["result"].clone();
    assert_eq!(told["inputRequests"]["amount"], request);
    assert_ne!(told["requestState"], "theirs");
    told["requestState"].clone()
}

fn answer(amount: i64) -> Value {
    json!({"amount": {"action": "accept", "content": {"amount": amount}}})
}

#[test]
fn the_real_amount_is_asked_about() {
    let mut world = World::new();
    send(&mut world, 1, &json!({}));
    let first = world.permit_and_watch();
    let state = asks_for_amount(&mut world, 1);
    assert!(world.reports.is_empty());
    send(&mut world, 2, &json!({"requestState": state, "inputResponses": answer(1_000_000)}));
    let question = world.asked[1].1.clone();
    assert_eq!(question["context"]["arguments"], json!({"amount": 1}));
    assert_eq!(question["context"]["input_responses"], answer(1_000_000));
    world.deny("Denied (constraint_exceeded).");
    assert_eq!(world.told(), "Denied (constraint_exceeded).");
    assert_eq!(world.server.len(), 1);
    assert_eq!((&world.reports[0].0, world.reports[0].1), (&first, Outcome::Abandoned));
}

#[test]
fn a_permitted_round_has_the_servers_own_state() {
    let mut world = World::new();
    send(&mut world, 1, &json!({}));
    let first = world.permit_and_watch();
    let state = asks_for_amount(&mut world, 1);
    send(&mut world, 2, &json!({"requestState": state, "inputResponses": answer(2)}));
    let second = world.permit_and_watch();
    let call = world.forwarded().pop().unwrap();
    assert_eq!(
        call["params"],
        params(&json!({"requestState": "theirs", "inputResponses": answer(2)}))
    );
    world.server(
        &json!({"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "content": []}}),
    );
    let reported: Vec<_> =
        world.reports.iter().map(|(id, outcome, _)| (id.clone(), *outcome)).collect();
    assert_eq!(reported, [(first, Outcome::Executed), (second, Outcome::Executed)]);
}

#[test]
fn a_round_is_accepted_once_and_for_its_call_only() {
    let mut world = World::new();
    send(&mut world, 1, &json!({}));
    let first = world.permit_and_watch();
    let state = asks_for_amount(&mut world, 1);
    send(
        &mut world,
        2,
        &json!({"requestState": state, "inputResponses": answer(2), "arguments": {"amount": 9}}),
    );
    assert_eq!(world.answer()["error"]["code"], -32602);
    send(&mut world, 3, &json!({"requestState": state, "inputResponses": answer(2)}));
    send(&mut world, 4, &json!({"requestState": state, "inputResponses": answer(3)}));
    assert_eq!(world.answer()["error"]["code"], -32602);
    assert_eq!(world.asked.len(), 2);
    let _ = first;
    // After 15 minutes it is not accepted, and the first permission is reported.
    let mut world = World::new();
    send(&mut world, 1, &json!({}));
    world.permit_and_watch();
    let state = asks_for_amount(&mut world, 1);
    world.pass(15 * 60);
    assert_eq!(world.reports[0].1, Outcome::Abandoned);
    send(&mut world, 2, &json!({"requestState": state, "inputResponses": answer(2)}));
    assert_eq!(world.answer()["error"]["code"], -32602);
    assert_eq!(world.asked.len(), 1);
}

#[test]
fn input_that_the_record_refuses_ends_the_call() {
    for (rounds, method) in [
        (Some("refuse"), "elicitation/create"),
        (Some("new word"), "elicitation/create"),
        (None, "sampling/createMessage"),
        (None, "roots/list"),
    ] {
        let mut world = World::new();
        world.record.as_mut().unwrap()["tools"][0]["mcp"]["rounds"] = json!(rounds);
        world.pass(61);
        send(&mut world, 1, &json!({}));
        world.permit_and_watch();
        let result =
            json!({"resultType": "input_required", "inputRequests": {"a": {"method": method}}});
        world.server(&json!({"jsonrpc": "2.0", "id": 1, "result": result}));
        assert!(world.told().contains("does not pass on"), "{method}");
        assert_eq!(world.reports[0].1, Outcome::Abandoned);
    }
}

/// A session with a running call, and the server's question to the user.
fn elicited(rounds: Option<&str>) -> World {
    let mut world = World::new();
    world.record.as_mut().unwrap()["tools"][0]["mcp"]["rounds"] = json!(rounds);
    world.pass(61);
    world.call(1, "touch", &json!({"amount": 1}));
    world.permit_and_watch();
    world.server(&json!({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": {"message": "?"}}));
    assert_eq!(world.answer()["method"], "elicitation/create");
    world
}

fn user_says(amount: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": "e", "result": {"action": "accept", "content": {"amount": amount}}})
}

#[test]
fn an_elicited_amount_is_asked_about_before_the_server_gets_it() {
    let mut world = elicited(None);
    world.client(&user_says(1_000_000));
    let asked = &world.asked[1].1["context"];
    assert_eq!(asked["input_responses"]["elicitation"]["content"]["amount"], 1_000_000);
    assert_eq!(world.server.len(), 1);
    world.deny("Denied (constraint_exceeded).");
    let sent = world.forwarded();
    assert_eq!(sent[1], json!({"jsonrpc": "2.0", "id": "e", "result": {"action": "cancel"}}));
    assert_eq!(sent[2]["method"], "notifications/cancelled");
    assert!(!json!(sent).to_string().contains("1000000"));
    assert_eq!(world.told(), "Denied (constraint_exceeded).");
    assert_eq!(world.reports.len(), 1);
    // A permitted answer reaches the server as it is, and both decisions are reported.
    let mut world = elicited(None);
    world.client(&user_says(2));
    world.permit_and_watch();
    assert_eq!(world.forwarded()[1], user_says(2));
    world.server(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}));
    assert_eq!(world.reports.iter().filter(|report| report.1 == Outcome::Executed).count(), 2);
    assert!(world.relay.is_idle());
}

#[test]
fn a_tool_that_takes_no_input_gets_none_in_a_session() {
    for rounds in ["refuse", "new word"] {
        let mut world = World::new();
        world.record.as_mut().unwrap()["tools"][0]["mcp"]["rounds"] = json!(rounds);
        world.pass(61);
        world.call(1, "touch", &json!({"amount": 1}));
        world.permit_and_watch();
        world.server(
            &json!({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": {}}),
        );
        assert!(world.client.is_empty(), "{rounds}");
        assert_eq!(world.forwarded()[1]["error"]["code"], -32601, "{rounds}");
        world.client(&user_says(2));
        assert_eq!((world.asked.len(), world.server.len()), (1, 2), "{rounds}");
    }
}

#[test]
fn a_held_round_keeps_the_clients_input_and_the_servers_state() {
    let mut world = World::new();
    send(&mut world, 1, &json!({}));
    world.permit_and_watch();
    let state = asks_for_amount(&mut world, 1);
    send(&mut world, 2, &json!({"requestState": state, "inputResponses": answer(2)}));
    world.hold();
    world.pass(51);
    let state = world.answer()["result"]["requestState"].clone();
    send(&mut world, 3, &json!({"requestState": state}));
    let call = world.followed.last().unwrap().0;
    world.event(Event::Approval(call, "approved".to_owned()));
    world.permit_and_watch();
    let question = &world.asked.last().unwrap().1;
    assert_eq!(question["context"]["input_responses"], answer(2));
    let sent = world.forwarded().pop().unwrap();
    assert_eq!(sent["params"]["inputResponses"], answer(2));
    assert_eq!(sent["params"]["requestState"], "theirs");
    // The state was used.
    send(&mut world, 4, &json!({"requestState": state}));
    assert_eq!(world.answer()["error"]["code"], -32602);
}

#[test]
fn an_answer_that_cannot_be_decided_is_not_passed_on() {
    let mut world = elicited(None);
    world.client(&user_says(2));
    let call = world.asked[1].0;
    let failure = crate::mcp::event::AskFailure::Unavailable("down".to_owned());
    world.event(Event::Decided(call, Err(failure)));
    assert_eq!(world.forwarded()[1]["result"], json!({"action": "cancel"}));
    assert_eq!(world.reports[0].1, Outcome::Abandoned);
    // The call may have ended before its input was decided.
    let mut world = elicited(None);
    world.client(&user_says(2));
    world.server(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}));
    world.permit();
    assert_eq!(world.forwarded()[1]["result"], json!({"action": "cancel"}));
    assert_eq!(world.server.len(), 2);
}

#[test]
fn input_passes_only_for_tools_that_read() {
    let mut world = elicited(Some("pass"));
    world.client(&user_says(2));
    assert_eq!(world.asked.len(), 2);
    let mut world = World::new();
    let mut reads = definition("read");
    reads["annotations"] = json!({"readOnlyHint": true});
    let digest = crate::mcp::definition::page(&json!({ "tools": [reads] }).to_string())
        .unwrap()
        .definitions[0]
        .digest
        .clone();
    let pin = &mut world.record.as_mut().unwrap()["tools"][1]["mcp"];
    pin["definition_digest"] = json!(digest);
    pin["definition"] = reads.clone();
    pin["rounds"] = json!("pass");
    world.tools.as_mut().unwrap()[1] = reads;
    world.pass(61);
    world.call(1, "read", &json!({}));
    world.permit_and_watch();
    world.server(&json!({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": {"message": "?"}}));
    world.client(&user_says(2));
    assert_eq!(world.asked.len(), 1);
    assert_eq!(world.forwarded()[1], user_says(2));
}
