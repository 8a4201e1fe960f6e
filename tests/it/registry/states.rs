//! State machines, their transitions, and the chain of events.

use authority_crypto::sha256;
use std::collections::BTreeSet;

use diesel_async::RunQueryDsl;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::rest::{Answer, App, id};
use crate::support::{Members, Plain, nothing, only};

fn invoice(tenant: &str) -> Value {
    json!({
        "tenant_id": tenant,
        "entity_class": "invoice",
        "states": ["draft", "sent", "paid", "void"],
        "final_states": ["paid", "void"],
        "transitions": [
            {"trigger": "send", "from": ["draft"], "to": "sent"},
            {"trigger": "pay", "from": ["sent"], "to": "paid",
             "required_evidence": ["receipt"], "roles": ["approver"]},
            {"trigger": "cancel", "from": ["draft", "sent"], "to": "void", "approvals": 2},
            {"trigger": "refund", "from": ["paid"], "to": "sent", "compensates": "pay"}
        ]
    })
}

async fn moved(app: &App, machine: &str, entity: &str, more: Value) -> Answer {
    moved_by(app, "ada@example.com", machine, entity, more).await
}

async fn moved_by(app: &App, actor: &str, machine: &str, entity: &str, more: Value) -> Answer {
    let body = json!({"machine_id": machine, "entity_id": entity}).and(&more);
    app.call_as("owner", "POST", "/state-transitions", body, &[("x-actor", actor)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_names_no_record_of_another_tenant() {
    let app = App::start().await;
    let (ours, theirs) = (app.tenant("acme").await, app.tenant("other").await);
    let tool = async |tenant: &str| {
        let body = json!({"tenant_id": tenant, "name": "t", "function_signature": "f()"});
        id(&app.make("/tools", body).await)
    };
    let machine = async |tenant: &str| {
        let body =
            json!({"tenant_id": tenant, "entity_class": "order", "states": ["open", "closed"]});
        id(&app.make("/state-machines", body).await)
    };
    let (own, foreign) = (tool(&ours).await, tool(&theirs).await);
    let (by, their_machine) = (machine(&ours).await, machine(&theirs).await);
    let headers = [("x-actor", "bo@example.com"), ("x-role", "admin")];
    let closed = only("to_state", "closed");
    let unknown = "svc:decision:0000".to_owned();
    for named in [&theirs, &foreign, &their_machine, &unknown, &"svc:agent:other:b".to_owned()] {
        moved(&app, &by, named, closed.clone()).await.is(400);
        let body = json!({"machine_id": by, "entity_id": named, "to_state": "closed"});
        let answer = app.call_as(&ours, "POST", "/app/state-transitions", body, &headers).await;
        assert_eq!(answer.is(400).fields(), ["entity_id"], "{named}");
        let refs = json!({"to_state": "closed", "evidence_refs": [format!("note:{named}")]});
        let answer = moved(&app, &by, "order-1", refs).await.is(400);
        assert_eq!(answer.fields(), ["evidence_refs[0]"], "{named}");
    }
    for named in [&ours, &own, &by, &"order-1".to_owned()] {
        moved(&app, &by, named, closed.clone()).await.is(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_states_make_a_machine_that_allows_every_move() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"entity_class": "order", "states": ["open", "closed"]});
    let machine = app.make("/state-machines", body).await;
    assert_eq!(machine["states"].texts(), ["open", "closed"]);
    assert_eq!((machine["initial_state"].text(), &machine["tenant_id"]), ("open", &Value::Null));
    let machine = id(&machine);
    assert!(machine.starts_with("svc:state_machine:"));
    let first = moved(&app, &machine, "order-1", only("to_state", "closed")).await.is(201);
    let event = &first.body["state_event"];
    assert_eq!((event["from_state"].text(), event["sequence"].number()), ("open", 1));
    let back = json!({"to_state": "open", "compensates_event_id": event["id"]});
    let back = moved(&app, &machine, "order-1", back).await.is(201);
    assert_eq!(back.body["state_event"]["compensates_event_id"], event["id"]);
    let nowhere = moved(&app, &machine, "order-1", only("to_state", "lost")).await.is(400);
    assert_eq!(nowhere.fields(), ["to_state"]);
    let own = app.call("POST", "/state-machines", json!({
        "tenant_id": tenant, "entity_class": "order", "states": ["a", "a"], "initial_state": "z",
    }));
    assert_eq!(own.await.is(400).fields(), ["states", "initial_state"]);
    let unknown = json!({"tenant_id": "svc:tenant:none", "entity_class": "o", "states": ["a"]});
    app.call("POST", "/state-machines", unknown).await.is(400);
    let list = app.get(&format!("/state-machines?tenant_id={tenant}")).await.is(200);
    assert_eq!(list.body["state_machines"], json!([]));
    assert_eq!(app.get("/state-machines?count=true").await.body["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_held_to_the_machine_its_evidence_and_the_role() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let machine = id(&app.make("/state-machines", invoice(&tenant)).await);
    let refused = moved(&app, &machine, "i-1", only("trigger", "pay")).await.is(409);
    assert_eq!(refused.body["error"], "transition_not_allowed");
    assert!(refused.body["message"].as_str().unwrap().contains("`send` to `sent`"));
    moved(&app, &machine, "i-1", nothing()).await.is(400);
    moved(&app, &machine, "i-1", only("to_state", "draft")).await.is(201);
    moved(&app, &machine, "i-1", json!({"to_state": "sent", "from_state": "paid"})).await.is(409);
    moved(&app, &machine, "i-1", json!({"to_state": "sent", "from_state": "draft"})).await.is(201);
    let bare = moved(&app, &machine, "i-1", only("trigger", "pay")).await.is(409);
    assert!(bare.body["message"].as_str().unwrap().contains("`receipt:<reference>`"));

    let pay = json!({"transition": {"machine_id": machine, "entity_id": "i-1", "trigger": "pay",
                     "evidence_refs": ["receipt:77"]}});
    let as_role = async |tenant: &str, role: &str| {
        let headers = [("x-role", role), ("x-actor", "bob@example.com")];
        let body = pay["transition"].clone();
        app.call_as(tenant, "POST", "/app/state-transitions", body, &headers).await
    };
    let member = as_role(&tenant, "member").await.is(403);
    assert_eq!(member.body["error"], "forbidden");
    let other = app.tenant("other").await;
    assert_eq!(as_role(&other, "approver").await.is(400).fields(), ["machine_id"]);
    let paid = as_role(&tenant, "approver").await.is(201);
    let event = &paid.body["state_event"];
    assert_eq!(
        (event["actor"].text(), event["tenant_id"].text()),
        ("bob@example.com", tenant.as_str())
    );
    assert_eq!(event["evidence_refs"].texts(), ["receipt:77"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compensating_move_is_linked_to_what_it_takes_back_once() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let machine = id(&app.make("/state-machines", invoice(&tenant)).await);
    moved(&app, &machine, "i-1", only("trigger", "send")).await.is(201);
    let pay = json!({"trigger": "pay", "evidence_refs": ["receipt:1"]});
    let paid = moved(&app, &machine, "i-1", pay.clone()).await.is(201).body;
    let other = json!({"trigger": "refund", "compensates_event_id": "svc:state_event:0"});
    moved(&app, &machine, "i-1", other).await.is(400);
    let back = moved(&app, &machine, "i-1", only("trigger", "refund")).await.is(201).body;
    assert_eq!(back["state_event"]["compensates_event_id"], paid["state_event"]["id"]);
    let again = moved(&app, &machine, "i-1", pay).await.is(201).body;
    let twice = json!({"trigger": "refund", "compensates_event_id": paid["state_event"]["id"]});
    moved(&app, &machine, "i-1", twice).await.is(409);
    let last = moved(&app, &machine, "i-1", only("trigger", "refund")).await.is(201).body;
    assert_eq!(last["state_event"]["compensates_event_id"], again["state_event"]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_are_two_and_ask_for_the_same() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let machine = id(&app.make("/state-machines", invoice(&tenant)).await);
    let cancel = json!({"trigger": "cancel", "evidence_refs": ["note:a"]});
    for _ in 0..2 {
        let waits = moved(&app, &machine, "i-1", cancel.clone()).await.is(412);
        assert_eq!(waits.body["error"], "second_approver_missing");
    }
    let events = app.get(&format!("/state-events?machine_id={machine}")).await.body;
    assert_eq!(events["state_events"], json!([]));
    // The same person is recognized by the subject, or by the name in other letter case.
    for (actor, subject) in [("new@example.com", "ada@example.com"), ("ADA@example.com", "other")] {
        let body = cancel.clone().with("machine_id", &machine).with("entity_id", "i-1");
        let headers = [("x-actor", actor), ("x-subject", subject)];
        app.call_as("owner", "POST", "/state-transitions", body, &headers).await.is(412);
    }
    let second = json!({"trigger": "cancel", "evidence_refs": ["note:b"]});
    let done = moved_by(&app, "bob@example.com", &machine, "i-1", second).await.is(201).body;
    let event = &done["state_event"];
    assert_eq!(
        (event["first_actor"].text(), event["actor"].text()),
        ("ada@example.com", "bob@example.com")
    );
    assert_eq!(event["evidence_refs"].texts(), ["note:b", "note:a"]);
    // After a transition, requests that were made before it no longer count.
    moved(&app, &machine, "i-2", cancel.clone()).await.is(412);
    moved(&app, &machine, "i-2", only("trigger", "send")).await.is(201);
    moved_by(&app, "bob@example.com", &machine, "i-2", cancel).await.is(412);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_moves_at_the_same_time_one_is_made() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let machine = id(&app.make("/state-machines", invoice(&tenant)).await);
    let sent = (0..16).map(|_| moved(&app, &machine, "i-1", only("trigger", "send")));
    let mut statuses: Vec<u16> = join_all(sent).await.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses[..2], [201, 409]);
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_a_chain_that_anyone_can_check_and_nobody_can_change() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let machine = id(&app.make("/state-machines", invoice(&tenant)).await);
    for (trigger, refs) in
        [("send", json!([])), ("pay", json!(["receipt:ä"])), ("refund", json!([]))]
    {
        let body = json!({"trigger": trigger, "evidence_refs": refs, "reason": "so it is"});
        moved(&app, &machine, "i-1", body).await.is(201);
    }
    app.get("/state-events").await.is(400);
    app.get(&format!("/state-events?machine_id={machine}&limit=201")).await.is(400);
    let mut events = Vec::new();
    let mut token = String::new();
    loop {
        let page = format!("/state-events?entity_id=i-1&limit=2&page_token={token}");
        let page = app.get(&page).await.is(200).body;
        events.extend(page["state_events"].as_array().unwrap().clone());
        match page["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    let sequences: Vec<_> =
        events.iter().map(|event| event["sequence"].as_i64().unwrap()).collect();
    assert_eq!(sequences, [3, 2, 1]);
    let mut previous = Value::Null;
    for event in events.iter().rev() {
        assert_eq!(event["previous_digest"], previous);
        let mut members = event.as_object().unwrap().clone();
        let digest = members.remove("digest").unwrap();
        let text = serde_json_canonicalizer::to_vec(&members).unwrap();
        assert_eq!(digest, json!(hex::encode(sha256(&text))));
        previous = digest;
    }
    let event = id(&events[0]);
    assert_eq!(
        app.get(&format!("/state-events/{event}")).await.is(200).body["state_event"],
        events[0]
    );
    app.get("/state-events/none").await.is(404);
    for (method, body) in [("PATCH", only("reason", "x")), ("DELETE", Value::Null)] {
        let refused = app.call(method, &format!("/state-events/{event}"), body).await.is(405);
        assert_eq!(
            (refused.body["error"].text(), refused.headers["allow"].to_str().unwrap()),
            ("state_events_are_immutable", "GET")
        );
    }
    let mut db = app.database.owner().await;
    for statement in ["UPDATE state_events SET reason = 'y'", "DELETE FROM state_machines"] {
        let refused = diesel::sql_query(statement).execute(&mut db).await.unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_is_listed_seeded_and_adopted_by_version() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let all = app.get("/state-library").await.is(200).body["library"].as_array().unwrap().clone();
    assert!(all.len() >= 24, "{}", all.len());
    let categories: BTreeSet<_> = all.iter().map(|machine| machine["category"].as_str()).collect();
    assert!(categories.len() >= 7, "{categories:?}");
    assert_eq!(all[0]["states"], json!([]));
    let some = app.get("/state-library?category=payments&include=full").await.is(200).body;
    let some = some["library"].as_array().unwrap().clone();
    assert!(!some.is_empty() && some.iter().all(|machine| machine["category"] == "payments"));
    assert!(!some[0]["states"].as_array().unwrap().is_empty());
    app.get("/state-library?include=half").await.is(400);

    for _ in 0..2 {
        let seeded = app.call("POST", "/state-library/seed", nothing()).await.is(200).body;
        assert_eq!(seeded, json!({"ok": true, "bundled_total": all.len(), "db_total": all.len()}));
    }
    app.get("/state-machines/from-library").await.is(400);
    let adopt = json!({"tenant_id": tenant, "library_id": some[0]["id"],
                       "library_version": "1.0.0", "tenant_entity_class": "own-word"});
    let adopted = app.call("POST", "/state-machines/from-library", adopt.clone()).await.is(200);
    let machine = &adopted.body["state_machine"];
    assert_eq!(machine["entity_class"], "own-word");
    assert_eq!(machine["library_id"], some[0]["id"]);
    let read = app.get(&format!("/state-machines/{}", id(machine))).await.is(200).body;
    assert_eq!(read["state_machine"], *machine);
    let lineage = app.get(&format!("/state-machines/from-library?tenant_id={tenant}")).await.body;
    let derivation = &lineage["derivations"][0];
    assert_eq!(derivation["state_machine_id"], machine["id"]);
    assert_eq!(
        (derivation["library_version"].text(), derivation["newest_version"].text()),
        ("1.0.0", "1.0.0")
    );
    let mut other = adopt.clone();
    other["library_version"] = "9.9.9".into();
    let refused = app.call("POST", "/state-machines/from-library", other).await.is(400);
    assert_eq!(refused.fields(), ["library_version"]);
    assert!(refused.body["message"].as_str().unwrap().contains("has 1.0.0"));
    let other = adopt.with("library_id", "none.such");
    let refused = app.call("POST", "/state-machines/from-library", other).await.is(400);
    assert_eq!(refused.fields(), ["library_id"]);
}
