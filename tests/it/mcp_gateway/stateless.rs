//! Calls of version 2026-07-28, between the official SDK's client and server: lists, rounds, holds.

use std::time::Duration;

use serde_json::{Value, json};

use super::{TENANT, approved, feature, sdk::SdkClient, told, world::World};

/// Denies the amount that a client adds in a later round.
const TOO_MUCH: &str = r#"@reason("x_too_much")
forbid (principal, action == Svc::Action::"mcp.rounds.pay", resource)
when {
  context.input has input_responses && context.input.input_responses has amount &&
  context.input.input_responses.amount has content &&
  context.input.input_responses.amount.content has amount &&
  context.input.input_responses.amount.content.amount > 100
};"#;

async fn world() -> World {
    World::start("rounds", feature("mcp_server.mjs")).await
}

/// Waits until a request for approval is pending.
async fn pending(world: &World) {
    let approver = world.app.person(TENANT, "approver", "approver@acme.example");
    loop {
        let (_, listed) = approver.get("/api/v1/app/approvals?state=pending").await;
        if listed["approvals"].as_array().is_some_and(|all| !all.is_empty()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn later_input_of_a_stateless_call_is_decided_again() {
    let world = world().await;
    world.free(&["echo", "pay"]).await;
    let policy = json!({"tenant_id": TENANT, "regime": "internal", "name": "amounts",
        "applies_to": ["action:mcp.rounds.pay"], "cedar": TOO_MUCH});
    let (status, made) = world.app.owner().post("/api/v1/policies", policy).await;
    assert_eq!(status, 201, "{made:#}");
    let mut client = SdkClient::start(&world.command("cat"), json!({"form": {}})).await;
    let listed = &client.listed;
    let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str());
    assert!(names.eq([Some("echo"), Some("wipe"), Some("pay")]), "{listed:#}");
    assert_eq!((&listed["cacheScope"], &listed["ttlMs"]), (&json!("private"), &json!(60_000)));

    let echoed = client.call("echo", json!({"message": "hello"}), Value::Null).await;
    assert_eq!(told(&echoed), ("Echo: hello".to_owned(), false));

    let bob = json!({"payee": "bob"});
    let paid = client.call("pay", bob.clone(), json!({"amount": 7})).await;
    assert_eq!(told(&paid), ("Paid 7 to bob".to_owned(), false));
    assert_eq!(paid["asked"][0]["message"], "How much?", "{paid:#}");
    assert_eq!((world.count("\"pay\""), world.count("\"amount\":7}")), (2, 1));

    let refused = client.call("pay", bob, json!({"amount": 701})).await;
    let (sentence, is_error) = told(&refused);
    assert!(is_error && sentence.contains("x_too_much"), "{sentence}");
    // The server asked for the amount and never got it.
    assert_eq!((world.count("\"pay\""), world.count("\"amount\":701}")), (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_held_stateless_call_waits_and_runs_once() {
    let world = world().await;
    let wipe = |disk: &str| json!({"disk": disk});
    // The client can't open links: its request stays open.
    let mut client = SdkClient::start(&world.command("cat"), json!({"form": {}})).await;
    client.begin("wipe", wipe("a"), Value::Null).await;
    pending(&world).await;
    assert_eq!(world.count("\"wipe\""), 0);
    approved(&world.app).await;
    let wiped = client.outcome().await;
    assert_eq!(told(&wiped), ("Wiped a".to_owned(), false));
    assert_eq!(wiped["asked"], json!([]));

    let modes = json!({"form": {}, "url": {}});
    let mut client = SdkClient::start(&world.command("cat"), modes).await;
    client.begin("wipe", wipe("b"), Value::Null).await;
    pending(&world).await;
    // The client accepts the link at once. That is not an approval.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.count("\"wipe\""), 1);
    approved(&world.app).await;
    let wiped = client.outcome().await;
    assert_eq!(told(&wiped), ("Wiped b".to_owned(), false));
    let [asked] = wiped["asked"].as_array().unwrap().as_slice() else { panic!("{wiped:#}") };
    assert_eq!(asked["mode"], "url");
    assert!(asked["url"].as_str().unwrap().contains("/receipts/"), "{asked:#}");

    // The approval is used: the same call needs another one.
    client.begin("wipe", wipe("b"), Value::Null).await;
    pending(&world).await;
    assert_eq!(world.count("\"wipe\""), 2);
}
