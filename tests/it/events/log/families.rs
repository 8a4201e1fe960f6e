//! Every relevant change is an event that matches its schema and contains no text of a caller.

use std::collections::BTreeSet;

use authority_process::clock::Clock;
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};

use super::{AGENT, PATIENCE, TENANT, decided, demo, events, made, told, types};
use crate::support::{Client, TestApp};

/// A marker that is part of every text that a caller may choose.
const MARKER: &str = "zebra-7c1f";

/// The free-form fields of a record.
fn remarks() -> Value {
    json!({"notes": MARKER, "tags": [MARKER], "metadata": {MARKER: MARKER}})
}

fn with(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn post(client: &Client, path: &str, body: Value) -> Value {
    let (status, answer) = client.post(path, body).await;
    assert!((200..300).contains(&status), "{path}: {status} {answer:#}");
    answer
}

async fn principal(app: &TestApp, class: &str, name: &str) -> String {
    let body = json!({"principal_class": class, "display_name": MARKER, "email": null,
                      "name": (class == "agent").then_some(name)});
    made(&app.owner(), "/api/v1/principals", "principal", with(body, &remarks())).await
}

/// Causes every type of event except expiries and events about reality coupling.
async fn everything(app: &TestApp, client: &Client) {
    let owner = app.owner();
    let person = principal(app, "human", "").await;
    let (bot, helper) =
        (principal(app, "agent", "bot").await, principal(app, "agent", "sub").await);
    let root = with(
        json!({"delegator_id": person, "delegate_id": bot, "actions": [format!("{MARKER}.*")],
               "can_delegate": true}),
        &remarks(),
    );
    let root = made(&owner, "/api/v1/delegations", "delegation", root).await;
    let below = json!({"delegator_id": bot, "delegate_id": helper, "parent_id": root,
                       "actions": [format!("{MARKER}.a")]});
    let below = made(&owner, "/api/v1/delegations", "delegation", below).await;
    let path = format!("/api/v1/delegations/{root}");
    post(&owner, &format!("{path}/narrow"), json!({"actions": [format!("{MARKER}.a")]})).await;
    post(&owner, &format!("{path}/suspend"), json!({"reason": MARKER})).await;
    post(&owner, &format!("{path}/reinstate"), json!({})).await;
    post(&owner, &format!("/api/v1/delegations/{below}/revoke"), json!({"reason": MARKER})).await;
    let uses = json!({"agent_id": bot, "used_id": format!("{MARKER}.*"), "used_kind": "action",
                      "notes": MARKER});
    post(&owner, "/api/v1/relationships/uses", uses).await;
    let row = format!("agent_id={bot}&used_id={MARKER}.*&used_kind=action");
    let gone = format!("/api/v1/relationships/uses/item?{row}");
    assert_eq!(owner.text("DELETE", &gone, None).await.0, 200);
    let stop = json!({"actor_id": bot, "reason": MARKER});
    let stop = made(&owner, "/api/v1/stop-signals", "stop_signal", stop).await;
    post(&owner, &format!("/api/v1/stop-signals/{stop}/lift"), json!({})).await;
    let quarantine = json!({"action": format!("{MARKER}.*"), "reason": MARKER});
    let quarantine = made(&owner, "/api/v1/quarantines", "quarantine", quarantine).await;
    post(&owner, &format!("/api/v1/quarantines/{quarantine}/release"), json!({})).await;
    let zone = json!({"time_zone": "Europe/Berlin"});
    assert_eq!(owner.patch("/api/v1/tenants/acme", zone).await.0, 200);
    approvals(app, client).await;
    let sealed = decided(client, 10.0, "DE").await;
    post(&owner, "/v1/evidence/seal", json!({"decision_id": sealed})).await;
    post(&owner, "/v1/replay/proof", json!({"decision_id": sealed})).await;
}

async fn approvals(app: &TestApp, client: &Client) {
    let people = ["ann", "bob"]
        .map(|who| app.person(TENANT, "approver", &format!("{who}-{MARKER}@example.org")));
    for (amount, verb, word) in [(25_000.0, "approve", "comment"), (26_000.0, "decline", "reason")]
    {
        let mut ask = crate::support::asking(amount, "DE");
        ask["context"][MARKER] = json!(MARKER);
        let held = post(client, "/api/v1/runtime/evaluate", ask).await;
        let id = held["approval_id"].as_str().unwrap();
        let path = format!("/api/v1/app/approvals/{id}");
        post(&people[0], &format!("{path}/{verb}"), json!({word: MARKER})).await;
        if verb == "approve" {
            post(&people[1], &format!("{path}/withdraw"), json!({"reason": MARKER})).await;
        }
    }
}

/// Checks that every event matches the schema of its type, and that the sequence has no gap.
async fn check(app: &TestApp, events: &[Value]) {
    let anybody = app.client("");
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["sequence"], json!(number), "{event:#}");
        let name = event["event_type"].as_str().unwrap();
        let (status, schema) = anybody.text("GET", &format!("/schemas/{name}.v1.json"), None).await;
        assert_eq!(status, 200, "{name}");
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(event).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?} {event:#}");
        for (members, known) in [
            (event, &schema["properties"]),
            (&event["data"], &schema["properties"]["data"]["properties"]),
        ] {
            for member in members.as_object().unwrap().keys() {
                assert!(known.get(member).is_some(), "{name} has no `{member}` in its schema");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_an_event_of_its_schema_without_a_callers_text() {
    let (app, client, _) = demo().await;
    everything(&app, &client).await;
    let begun = std::time::Instant::now();
    let expected = BTreeSet::from([
        "svc.actor.stopped",
        "svc.authority.attenuated",
        "svc.authority.granted",
        "svc.authority.reinstated",
        "svc.authority.revoked",
        "svc.authority.suspended",
        "svc.capability.granted",
        "svc.capability.quarantined",
        "svc.capability.released",
        "svc.decision.approved",
        "svc.decision.declined",
        "svc.decision.requires_approval",
        "svc.evidence_pack.generated",
        "svc.evidence_pack.replayed",
        "svc.recovery.completed",
        "svc.tenant.changed",
    ]);
    let all = loop {
        let all = events(&app).await;
        if BTreeSet::from_iter(types(&all)) == expected {
            break all;
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}", types(&all));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    check(&app, &all).await;
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains(MARKER), "{text}");
    let of =
        |name: &str| all.iter().filter(|event| event["event_type"] == name).collect::<Vec<_>>();
    let changes: Vec<&Value> =
        of("svc.authority.attenuated").iter().map(|event| &event["data"]["change"]).collect();
    assert_eq!(changes, ["delegated", "narrowed"]);
    let outcomes: Vec<&Value> =
        of("svc.decision.declined").iter().map(|event| &event["data"]["outcome"]).collect();
    assert_eq!(outcomes, ["withdrawn", "declined"]);
    let zone = json!({"setting": "time_zone", "before": "UTC", "after": "Europe/Berlin"});
    assert_eq!(of("svc.tenant.changed")[0]["data"], zone);
    assert_eq!(of("svc.authority.suspended")[0]["data"]["below"], 1);
    assert_eq!(of("svc.actor.stopped")[0]["data"]["delegations"], 2);
}

/// An expiry does not write to its row. Its event still arrives within five seconds, exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expiry_is_one_event() {
    let (app, _, root) = demo().await;
    let end = (Clock::default().now() + TimeDelta::seconds(2))
        .to_rfc3339_opts(SecondsFormat::Micros, true);
    let helper = principal(&app, "agent", "helper").await;
    let below = json!({"delegator_id": AGENT, "delegate_id": helper, "parent_id": root,
                       "actions": ["payment.execute"], "purposes": ["invoice-settlement"],
                       "jurisdictions": ["DE"], "max_amount": "10", "currency": "EUR",
                       "expires_at": end});
    let below = made(&app.owner(), "/api/v1/delegations", "delegation", below).await;
    let uses =
        json!({"agent_id": helper, "used_id": "report.*", "used_kind": "action", "until": end});
    post(&app.owner(), "/api/v1/relationships/uses", uses).await;
    let event = told(&app, "svc.authority.expired", &below).await;
    assert_eq!(event["occurred_at"], json!(end));
    assert_eq!(event["data"]["kind"], "delegation");
    assert_eq!(event["reason_code"], "delegation_expired");
    // Waits past the next sweep.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let all = events(&app).await;
    let expired = all.iter().filter(|event| event["event_type"] == "svc.authority.expired");
    let mut kinds: Vec<&str> =
        expired.map(|event| event["data"]["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["delegation", "uses"]);
    check(&app, &all).await;
}
