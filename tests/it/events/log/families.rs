//! Every relevant change is an event that matches its schema and contains no text of a caller.

use std::collections::BTreeSet;

use authority_process::clock::Clock;
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};

use super::{AGENT, PATIENCE, TENANT, decided, demo, events, told, types};
use crate::support::{
    Answered, Client, Members, TestApp, new_delegation, new_principal, new_stop, new_uses, only,
};

/// A marker that is part of every text that a caller may choose.
const MARKER: &str = "zebra-7c1f";

/// The free-form fields of a record.
fn remarks() -> Value {
    json!({"notes": MARKER, "tags": [MARKER], "metadata": {MARKER: MARKER}})
}

async fn principal(app: &TestApp, class: &str, name: &str) -> String {
    let body = new_principal(class, MARKER)
        .with("email", Value::Null)
        .with("name", (class == "agent").then_some(name))
        .and(&remarks());
    app.owner().create_principal(body).await.assert_made("principal")
}

/// Causes every type of event except expiries and events about reality coupling.
async fn everything(app: &TestApp, client: &Client) {
    let owner = app.owner();
    let person = principal(app, "human", "").await;
    let (bot, helper) =
        (principal(app, "agent", "bot").await, principal(app, "agent", "sub").await);
    let all = format!("{MARKER}.*");
    let one = format!("{MARKER}.a");
    let root = new_delegation(&person, &bot, &[&all]).with("can_delegate", true).and(&remarks());
    let root = owner.create_delegation(root).await.assert_made("delegation");
    let below = new_delegation(&bot, &helper, &[&one]).with("parent_id", &root);
    let below = owner.create_delegation(below).await.assert_made("delegation");
    owner.narrow_delegation(&root, only("actions", [&one])).await.assert_status(200);
    let because = only("reason", MARKER);
    owner.act_on_delegation(&root, "suspend", because).await.assert_status(200);
    owner.reinstate_delegation(&root).await.assert_status(200);
    owner.revoke_delegation(&below, Some(MARKER)).await.assert_status(200);
    owner.create_uses(new_uses(&bot, &all).with("notes", MARKER)).await.assert_status(201);
    let row = format!("agent_id={bot}&used_id={MARKER}.*&used_kind=action");
    let gone = format!("/api/v1/relationships/uses/item?{row}");
    assert_eq!(owner.text("DELETE", &gone, None).await.0, 200);
    let stop = owner.create_stop_signal(new_stop(&bot, MARKER)).await.assert_made("stop_signal");
    owner.lift_stop_signal(&stop).await.assert_status(200);
    let quarantine = json!({"tenant_id": TENANT, "action": all, "reason": MARKER});
    let quarantine = owner.create_quarantine(quarantine).await.assert_made("quarantine");
    owner.release_quarantine(&quarantine).await.assert_status(200);
    assert_eq!(owner.update_tenant("acme", only("time_zone", "Europe/Berlin")).await.0, 200);
    approvals(app, client).await;
    let sealed = decided(client, 10.0, "DE").await;
    owner.seal_decision(&sealed).await.assert_status(200);
    owner.mint_replay_proof(only("decision_id", &sealed)).await.assert_status(200);
}

async fn approvals(app: &TestApp, client: &Client) {
    let people = ["ann", "bob"]
        .map(|who| app.person(TENANT, "approver", &format!("{who}-{MARKER}@example.org")));
    for (amount, verb, word) in [(25_000.0, "approve", "comment"), (26_000.0, "decline", "reason")]
    {
        let mut ask = crate::support::asking(amount, "DE");
        ask["context"][MARKER] = MARKER.into();
        let held = client.evaluate(ask).await.assert_status(200);
        let id = held["approval_id"].as_str().unwrap();
        people[0].act_on_approval(id, verb, only(word, MARKER)).await.assert_status(200);
        if verb == "approve" {
            let why = only("reason", MARKER);
            people[1].act_on_approval(id, "withdraw", why).await.assert_status(200);
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
    let below = json!({"tenant_id": TENANT, "delegator_id": AGENT, "delegate_id": helper,
                       "parent_id": root, "actions": ["payment.execute"],
                       "purposes": ["invoice-settlement"], "jurisdictions": ["DE"],
                       "max_amount": "10", "currency": "EUR", "expires_at": end});
    let below = app.owner().create_delegation(below).await.assert_made("delegation");
    let uses = new_uses(&helper, "report.*").with("until", &end);
    app.owner().create_uses(uses).await.assert_status(201);
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
