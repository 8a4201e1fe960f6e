//! Work that callers can make long is bounded, scheduled fairly, and cancelled when they
//! disconnect.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{asking, demo, simulate::TENANT};
use crate::support::{Answered, Client, Limits, Plain, SIMULATE_DECISION, only};

/// Returns a statement with this pattern: a wildcard, this many times `a`, and a `b`.
fn pattern(run: usize) -> String {
    let run = "a".repeat(run);
    format!(
        "forbid(principal, action, resource) when {{ context.input has note && \
         context.input.note like \"*{run}b\" }};"
    )
}

fn noting(length: usize) -> Value {
    let mut ask = asking(1.0, "DE");
    ask["context"]["note"] = json!("a".repeat(length));
    ask
}

/// Returns texts that take a while to parse.
fn heavy() -> Value {
    let one = "forbid(principal, action, resource) when { context has amount && \
               context.amount.greaterThan(decimal(\"1.0\")) };\n";
    let candidate = only("cedar", one.repeat(100));
    json!({"request": asking(1.0, "DE"), "candidate_policies": vec![candidate; 20]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_costs_no_more_than_a_decision_may() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let long =
        json!({"request": asking(1.0, "DE"), "candidate_policies": [{"cedar": pattern(512)}]});
    let stored = json!({"tenant_id": TENANT, "regime": "long", "cedar": pattern(512)});
    for (status, answer) in
        [client.simulate_decision(long).await, owner.create_policy(stored).await]
    {
        assert_eq!(status, 400, "{answer:#}");
        assert!(answer["message"].as_str().unwrap().contains("over 512 characters"), "{answer:#}");
    }
    let body = json!({"request": noting(200_000), "candidate_policies": [{"cedar": pattern(511)}]});
    let (status, answer) = client.simulate_decision(body).await;
    assert_eq!((status, answer["reason_code"].text()), (200, "rule_error"), "{answer:#}");
    let told = answer["stages"].to_string();
    assert!(told.contains("would take too long"), "{told}");
    // The same policy, once active, denies long texts as an error and still evaluates short ones.
    let stored = json!({"tenant_id": TENANT, "regime": "long", "cedar": pattern(511)});
    assert_eq!(owner.create_policy(stored).await.0, 201);
    for (length, decision, reason) in
        [(200_000, "deny", "rule_error"), (1_000, "allow", "permission_granted")]
    {
        let (_, answer) = client.evaluate(noting(length)).await;
        let found = (&answer["decision"], &answer["reason_code"]);
        assert_eq!(found, (&json!(decision), &json!(reason)), "{answer:#}");
    }
}

/// Checks that sequential decisions are answered well before a timeout.
async fn decides(client: &Client) {
    for _ in 0..5 {
        let begun = Instant::now();
        let (status, answer) = client.evaluate(asking(1.0, "DE")).await;
        assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulations_wait_in_turn_and_never_keep_decisions_or_other_tenants() {
    let (app, client, _) = demo().await;
    let flood: Vec<_> = (0..24)
        .map(|_| {
            let client = app.client(&client.token);
            tokio::spawn(async move {
                Limits::of_call(&client, "POST", SIMULATE_DECISION, Some(&heavy()), &[]).await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    decides(&client).await;
    // Another tenant's simulation does not wait behind the long ones.
    let mut other = asking(1.0, "DE");
    other["subject"] = "svc:agent:other:bot".into();
    let begun = Instant::now();
    let (status, answer) = app.owner().simulate_decision(only("request", &other)).await;
    assert_eq!((status, answer["decision"].text()), (200, "deny"), "{answer:#}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    // Work is cancelled when its caller disconnects.
    let (answered, waiting): (Vec<_>, Vec<_>) =
        flood.into_iter().partition(JoinHandle::is_finished);
    waiting.iter().for_each(JoinHandle::abort);
    assert!(waiting.len() >= 8, "{} of 24 waited", waiting.len());
    let answered = join_all(answered).await.into_iter().map(Result::unwrap);
    let refused: Vec<_> = answered.filter(|(shown, _)| shown.status == 429).collect();
    assert!(!refused.is_empty());
    for (shown, answer) in refused {
        assert_eq!(answer["error"], "rate_limited", "{answer:#}");
        assert_eq!(shown.left, r#""waiting_computations_per_tenant";r=0"#);
        let policy = r#""waiting_computations_per_tenant";q=16;qu="concurrent-requests""#;
        assert_eq!(shown.policy, policy);
    }
    let begun = Instant::now();
    client.simulate_decision(only("request", asking(1.0, "DE"))).await.assert_status(200);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
