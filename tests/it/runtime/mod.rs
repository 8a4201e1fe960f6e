//! The decision operations, over every transport, and their records.

mod approval_lists;
mod approvals;
mod approvers;
mod asking;
mod budgets;
mod cite_ready;
mod cost;
mod durability;
mod explained;
mod exports;
mod found;
mod grants;
mod hooks;
mod hostile_texts;
mod idempotency;
mod impact;
mod included_record;
mod input;
mod inspected;
mod later_release;
mod lists;
mod long_work;
mod loosened;
mod named;
mod observing;
mod own_policies;
mod pages;
mod presentation;
mod proof;
mod questions;
mod rates;
mod readers;
mod renewals;
mod repeats;
mod reports;
mod search;
mod shown_pages;
mod simulate;
mod spans;
mod stop_impact;
mod stopped_again;
mod stops;
mod time_zones;
mod tools;
mod transports;
mod usage;
mod watch;
mod withdrawals;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Answered, Client, Members, TestApp, asking, only, redacted};

/// Starts the demonstration tenant. Returns a client with an API key, and the delegation's id.
async fn demo() -> (TestApp, Client, String) {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    (app, client, demo.delegation_id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_requests_of_the_banner() {
    let (_app, client, _) = demo().await;
    for (name, amount, place) in
        [("allowed", 1200.0, "DE"), ("held", 25_000.0, "DE"), ("denied", 1200.0, "US")]
    {
        let answer = client.evaluate(asking(amount, place)).await.assert_status(200);
        assert_snapshot!(name, redacted(answer));
    }
}

/// Repeating a held request does not open a second approval request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_question_waits_for_one_approval() {
    let (_app, client, _) = demo().await;
    let asked = (0..8).map(|_| client.evaluate(asking(25_000.0, "DE")));
    let answers = futures_util::future::join_all(asked).await;
    let first = &answers[0].1;
    for (status, answer) in &answers {
        assert_eq!((*status, &answer["approval_id"]), (200, &first["approval_id"]), "{answer:#}");
        // Each call is a separate decision.
        let same = answer["decision_id"] == first["decision_id"];
        assert_eq!(same, std::ptr::eq(answer, first));
    }
    let (_, other) = client.evaluate(asking(25_001.0, "DE")).await;
    assert_ne!(other["approval_id"], first["approval_id"]);
    let id = first["decision_id"].as_str().unwrap();
    let (_, found) = client.get_decision(id).await;
    assert_eq!(found["approval_state"], "pending", "{found:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_answers_in_order_and_each_fails_alone() {
    let (_app, client, delegation) = demo().await;
    let mut bad = asking(1.0, "DE");
    bad["context"]["amount"] = 0.000_01.into();
    let named = asking(3.0, "DE").with("delegation_id", &delegation);
    let requests = json!({"requests": [asking(1.0, "DE"), bad, asking(2.0, "US"), named]});
    let answer = client.batch_evaluate(requests).await.assert_status(200);
    assert_snapshot!("batch", redacted(answer));
    let (status, _) = client.batch_evaluate(json!({"requests": []})).await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_may_ask_for_authority_as_recent_as_it_knows() {
    let (_app, client, _) = demo().await;
    let mut ask = asking(1.0, "DE");
    let (_, answer) = client.evaluate(ask.clone()).await;
    let revision = answer["authority_revision"].as_u64().unwrap();
    ask["at_least_revision"] = revision.into();
    let (status, _) = client.evaluate(ask.clone()).await;
    assert_eq!(status, 200);
    ask["at_least_revision"] = (revision + 1000).into();
    let (status, answer) = client.evaluate(ask).await;
    assert_eq!((status, &answer["error"]), (400, &"invalid_request".into()), "{answer:#}");
    assert_eq!(answer["details"][0]["field"], "at_least_revision", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_shows_every_stage() {
    let (_app, client, _) = demo().await;
    let (_, answer) = client.evaluate(asking(25_000.0, "DE").with("explain", true)).await;
    assert_snapshot!("explained", redacted(answer));
}

/// A suspended tenant's keys and decisions stop with the response to its suspension.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_tenant_stops_at_once() {
    let (app, client, _) = demo().await;
    app.owner().update_tenant("acme", only("state", "suspended")).await.assert_status(200);
    let (status, _) = client.evaluate(asking(1.0, "DE")).await;
    assert!(status == 401 || status == 403, "{status}");
    let (_, answer) = app.owner().evaluate(asking(1.0, "DE")).await;
    assert_eq!(answer["reason_code"], "tenant_inactive", "{answer:#}");
}
