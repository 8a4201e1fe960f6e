//! Calls of tools: decided, forwarded, stopped, answered, reported.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, settings};
use crate::mcp::{
    decision::{Decision, Permit},
    event::{AskFailure, CallId, Event, Outcome},
    relay::Settings,
};

const LINE: &[u8] =
    br#"{ "jsonrpc":"2.0","method":"tools/call", "id":7,"x-own":{"b":1.50,"a":"\u00e9"},
    "params":{"arguments":{"path":"a","n":1e2},"name":"touch","x":[ ],"_meta":{"y":null}} }"#;

fn line() -> Vec<u8> {
    LINE.iter().copied().filter(|byte| *byte != b'\n').collect()
}

#[test]
fn a_permitted_call_reaches_the_server_byte_for_byte() {
    let mut world = World::new();
    world.event(Event::Client(line()));
    let (_, question, key) = world.asked[0].clone();
    assert_eq!(question["action"], "mcp.files.touch");
    assert_eq!(question["context"]["arguments"], json!({"path": "a", "n": 100.0}));
    assert_eq!(question["client_nonce"].as_str().map(str::len), Some(32));
    assert_eq!(key.len(), 36);
    let decision_id = world.permit();
    world.assert_nothing_forwarded();
    world.watching();
    assert_eq!(world.server, [line()]);
    assert_eq!(world.begun, [decision_id.as_str()]);
    // The answer is relayed byte for byte, too.
    let answer =
        br#"{"result":{"content":[],"z":1.0,"a":{"k":1,"k":2}}, "jsonrpc":"2.0","id":7}"#.to_vec();
    let sent = world.relay.handle(Event::Server(answer.clone()), world.now);
    assert_eq!(sent[0], crate::mcp::event::Action::ToClient(answer));
}

#[test]
fn outcomes_are_reported() {
    for (answer, outcome) in [
        (json!({"result": {"content": []}}), Outcome::Executed),
        (json!({"result": {"content": [], "isError": true}}), Outcome::Failed),
        (json!({"error": {"code": -32000, "message": "no"}}), Outcome::Failed),
        (json!({"result": {"isError": "maybe"}}), Outcome::Failed),
        (json!({"result": {"resultType": "new"}}), Outcome::Failed),
        (json!({"result": {"task": {"taskId": "1"}}}), Outcome::Failed),
    ] {
        let mut world = World::new();
        world.call(7, "touch", &json!({}));
        let decision_id = world.permit_and_watch();
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = json!(7);
        world.server(&message);
        assert_eq!((&world.reports[0].0, world.reports[0].1), (&decision_id, outcome), "{answer}");
        assert_eq!((world.client.len(), world.answer()["id"].as_i64()), (1, Some(7)));
        assert!(world.relay.is_idle());
    }
}

#[test]
fn a_denied_call_is_a_result_that_the_model_reads() {
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    world.deny("Denied (constraint_exceeded): ask for less.");
    assert_eq!(world.told(), "Denied (constraint_exceeded): ask for less.");
    assert!(world.answer()["result"].get("resultType").is_none());
    world.assert_nothing_forwarded();
    let mut world = World::with(Settings { denial_is_error: true, ..settings() });
    world.call(1, "touch", &json!({}));
    world.deny("Denied.");
    assert_eq!(world.answer()["error"], json!({"code": -32001, "message": "Denied."}));
}

#[test]
fn the_resource_that_a_call_names_is_looked_up_for_each_question() {
    let mut world = World::new();
    let map = json!({"resource": {"kind": "file", "pointer": "/path"}});
    let record = world.record.as_mut().unwrap();
    record["tools"][0]["mcp"]["context_map"] = map;
    world.pass(61);
    world.call(1, "touch", &json!({"path": "a"}));
    assert!(world.told().contains("resource_access_missing"));
    world.call(2, "touch", &json!({"path": 7}));
    assert!(world.told().starts_with("Denied"));
    assert!(world.asked.is_empty());
    world.assert_nothing_forwarded();
    for resource in ["svc:ent:acme:resource:1", "svc:ent:acme:resource:2"] {
        world.resources.insert("a".to_owned(), resource.to_owned());
        world.call(3, "touch", &json!({"path": "a"}));
        assert_eq!(world.asked.last().unwrap().1["resource_id"], resource);
        world.permit_and_watch();
        world.server(&json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}}));
    }
    // A tool without the argument names no resource.
    world.call(4, "read", &json!({"path": "a"}));
    assert_eq!(world.asked.last().unwrap().1.get("resource_id"), None);
}

#[test]
fn without_a_decision_there_is_no_call() {
    let failures = [
        (AskFailure::Unavailable("down".to_owned()), Some(-32603)),
        (AskFailure::Refused("invalid".to_owned()), None),
    ];
    for (failure, code) in failures {
        let mut world = World::new();
        world.call(1, "touch", &json!({}));
        let call = world.asked[0].0;
        world.event(Event::Decided(call, Err(failure)));
        assert_eq!(world.answer()["error"]["code"].as_i64(), code);
        world.assert_nothing_forwarded();
    }
    let mut world = World::new();
    world.record = None;
    world.pass(61);
    world.call(1, "touch", &json!({}));
    assert_eq!(world.answer()["error"]["code"], -32603);
    assert!(world.asked.is_empty());
}

#[test]
fn a_permission_counts_from_the_question_and_only_while_it_is_watched() {
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    let decision_id = world.permit();
    world.now += Duration::from_secs(30);
    world.watching();
    world.assert_nothing_forwarded();
    assert_eq!((&world.reports[0].0, world.reports[0].1), (&decision_id, Outcome::Abandoned));
    assert!(world.told().contains("ended before"));

    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    world.permit();
    let call = world.watched[0].0;
    world.event(Event::Unwatched(call, "too many streams".to_owned()));
    world.assert_nothing_forwarded();
    assert_eq!(world.answer()["error"]["code"], -32603);
    assert_eq!(world.reports[0].1, Outcome::Abandoned);
    // Later news of the stream have no effect.
    world.event(Event::Watching(call));
    world.assert_nothing_forwarded();
}

#[test]
fn a_permission_that_ends_while_the_beginning_is_recorded_permits_nothing() {
    type End = (fn(&mut World, CallId), &'static str);
    let ends: [End; 3] = [
        (|world, _| world.now += Duration::from_secs(30), "ended before"),
        (
            |world, call| world.event(Event::Stopped(call, "actor.stop_signal".to_owned())),
            "actor.stop_signal",
        ),
        (|world, call| world.event(Event::Stopped(call, "watch.lost".to_owned())), "watch.lost"),
    ];
    for (end, told) in ends {
        let mut world = World::new();
        world.records = false;
        world.call(1, "touch", &json!({}));
        let decision_id = world.permit_and_watch();
        let call = world.watched[0].0;
        assert_eq!((world.begun.len(), world.server.len()), (1, 0));
        end(&mut world, call);
        world.event(Event::Begun(call, Ok(())));
        assert!(world.server.is_empty(), "{told}");
        assert!(world.told().contains(told), "{}", world.told());
        assert_eq!((&world.reports[0].0, world.reports[0].1), (&decision_id, Outcome::Abandoned));
    }
}

#[test]
fn an_approval_is_used_only_if_its_use_can_be_recorded() {
    for (is_approved, forwarded) in [(true, 0), (false, 1)] {
        let mut world = World::new();
        world.records = false;
        world.call(1, "touch", &json!({}));
        world.decide(Decision::Permitted(Permit {
            decision_id: "permit".to_owned(),
            valid_for: Duration::from_secs(30),
            obligations: Vec::new(),
            is_approved,
            proof: json!({"record": "{}"}),
        }));
        world.watching();
        let call = world.watched[0].0;
        world.event(Event::Begun(call, Err("the disk is full".to_owned())));
        assert_eq!(world.server.len(), forwarded);
        if is_approved {
            assert!(world.told().contains("the disk is full"));
            assert_eq!(world.reports[0].1, Outcome::Abandoned);
        }
    }
}

#[test]
fn a_stopped_call_is_cancelled_and_its_late_answer_dropped() {
    let mut world = World::with(Settings { kill_on_stop: true, ..settings() });
    world.call(1, "touch", &json!({}));
    world.permit_and_watch();
    let call = world.watched[0].0;
    world.event(Event::Stopped(call, "actor.stop_signal".to_owned()));
    let cancelled = world.forwarded().pop().unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], 1);
    assert!(world.told().contains("actor.stop_signal"));
    assert!(world.told().contains("cancellation was requested, not confirmed"));
    assert_eq!((world.reports[0].1, world.kills), (Outcome::Abandoned, 1));
    let told = world.client.len();
    world.server(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}));
    assert_eq!((world.client.len(), world.reports.len()), (told, 1));
    // The same stop before the call begins: it never begins.
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    world.permit();
    let call = world.watched[0].0;
    world.event(Event::Stopped(call, "actor.stop_signal".to_owned()));
    world.event(Event::Watching(call));
    world.assert_nothing_forwarded();
}

#[test]
fn a_call_that_the_client_cancels_never_begins() {
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    world.client(&cancel);
    let decision_id = world.permit();
    assert!(world.watched.is_empty());
    assert_eq!((&world.reports[0].0, world.reports[0].1), (&decision_id, Outcome::Abandoned));
    world.assert_nothing_forwarded();
    assert!(world.client.is_empty() && world.server.is_empty());
    // Once the server works on it, the server is told.
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    world.permit_and_watch();
    world.client(&cancel);
    assert_eq!(world.forwarded().pop().unwrap(), cancel);
    assert_eq!(world.reports[0].1, Outcome::Abandoned);
}

#[test]
fn a_server_that_ends_leaves_no_request_without_an_answer() {
    let mut world = World::new();
    world.client(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    world.call(2, "touch", &json!({}));
    world.permit_and_watch();
    world.call(3, "read", &json!({}));
    world.event(Event::ServerGone);
    let mut ids: Vec<_> = world.client.iter().map(|answer| answer["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
    assert_eq!(world.reports[0].1, Outcome::Failed);
}

#[test]
fn a_client_that_ends_abandons_its_calls() {
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    let decision_id = world.permit_and_watch();
    world.event(Event::ClientGone);
    assert_eq!((&world.reports[0].0, world.reports[0].1), (&decision_id, Outcome::Abandoned));
}

#[test]
fn the_server_gets_the_permission_if_the_configuration_says_so() {
    let mut world = World::with(Settings { permit_to_tool: true, ..settings() });
    world.event(Event::Client(line()));
    world.permit_and_watch();
    let call = world.forwarded().pop().unwrap();
    assert_eq!(call["params"]["_meta"]["agent-authority/permit"], json!({"record": "{}"}));
    assert_eq!(call["params"]["_meta"]["y"], Value::Null);
    assert_eq!(call["x-own"]["a"], "é");
}

#[test]
fn warnings_of_reality_are_shown_with_the_result() {
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    let permit = Permit {
        decision_id: "d".to_owned(),
        valid_for: Duration::from_secs(30),
        obligations: vec!["audit.emit".to_owned(), "reality.warn".to_owned()],
        ..Permit::default()
    };
    world.decide(Decision::Permitted(permit));
    world.watching();
    world.server(
        &json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "_meta": {"own": 1}}}),
    );
    let meta = &world.answer()["result"]["_meta"];
    assert_eq!(meta, &json!({"own": 1, "agent-authority/obligations": ["reality.warn"]}));
}

#[test]
fn an_id_is_used_by_one_request_at_a_time() {
    let mut world = World::new();
    world.call(1, "touch", &json!({}));
    world.call(1, "read", &json!({}));
    assert_eq!(world.answer()["error"]["code"], -32600);
    assert_eq!(world.asked.len(), 1);
    world.permit_and_watch();
    world.server(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}));
    world.call(1, "touch", &json!({}));
    assert_eq!(world.asked.len(), 2);
    assert_ne!(world.asked[0].2, world.asked[1].2);
    assert_ne!(world.asked[0].1["client_nonce"], world.asked[1].1["client_nonce"]);
}
