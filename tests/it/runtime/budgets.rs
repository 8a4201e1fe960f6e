//! Bounds on counts and totals: simultaneous requests never exceed them together.

mod shown;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{Answered, Client, Members, TENANT, TestApp, Wishes, only};

/// Creates a delegation like the demonstration's, with further bounds. Returns its id.
async fn lent(app: &TestApp, delegation: &str, bounds: Value) -> String {
    let (_, first) = app.owner().get_delegation(delegation).await;
    let first = &first["delegation"];
    let mut body = json!({"tenant_id": TENANT, "actions": ["payment.*"], "currency": "EUR",
                          "delegator_id": first["delegator_id"], "delegate_id": first["delegate_id"]});
    for (member, value) in bounds.as_object().unwrap() {
        body[member] = value.clone();
    }
    let made = app.owner().create_delegation(body).await.assert_status(201);
    made["delegation"]["id"].as_str().unwrap().to_owned()
}

fn under(delegation: &str, amount: f64) -> Value {
    asking(amount, "DE").with("delegation_id", delegation)
}

/// Makes `times` requests over these nodes at once and
/// returns how many are allowed. All others must be refused.
async fn allowed(nodes: &[&Client], ask: &Value, times: usize) -> usize {
    let calls = (0..times).map(|n| answered(nodes[n % nodes.len()], ask));
    let answers: Vec<Value> = stream::iter(calls).buffer_unordered(100).collect().await;
    for answer in &answers {
        let refused = answer["reason_code"] == "constraint_exceeded";
        assert!(refused || answer["decision"] == "allow", "{answer:#}");
    }
    answers.iter().filter(|answer| answer["decision"] == "allow").count()
}

/// Asks with a key of its own, and again with this key while a busy machine leaves the call
/// unanswered. The budget must count such a call once.
async fn answered(node: &Client, ask: &Value) -> Value {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let key = format!("call-{}", CALLS.fetch_add(1, Ordering::Relaxed));
    for _ in 0..20 {
        let headers = [("idempotency-key", key.as_str())];
        let call = node.evaluate_with(ask.clone(), &headers);
        match call.await {
            (200, answer) => return answer,
            (503 | 409, _) => tokio::time::sleep(Duration::from_millis(200)).await,
            (status, answer) => panic!("{status}: {answer:#}"),
        }
    }
    panic!("no answer after 20 attempts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_for_a_hundred_allows_a_hundred_of_five_hundred() {
    let (app, client, delegation) = demo().await;
    let beside = app.beside(Wishes::default()).await;
    let bounds = json!({"max_uses": {"count": 100, "window_seconds": 86400}});
    let lent = lent(&app, &delegation, bounds).await;
    let there = beside.client(&client.token);
    assert_eq!(allowed(&[&client, &there], &under(&lent, 1.0), 500).await, 100);
    assert_eq!(allowed(&[&client], &under(&lent, 1.0), 3).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sum_of_amounts_is_spent_to_its_last_part() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"max_total_amount": {"amount": "100.00", "window_seconds": 86400}});
    let lent = lent(&app, &delegation, bounds).await;
    assert_eq!(allowed(&[&client], &under(&lent, 33.3), 40).await, 3);
    assert_eq!(allowed(&[&client], &under(&lent, 0.05), 4).await, 2);
    assert_eq!(allowed(&[&client], &under(&lent, 0.0001), 1).await, 0);
}

/// A child's decisions also spend its parents' budgets. A refused request does not spend.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_ancestor_counts() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"can_delegate": true, "max_uses": {"count": 3, "window_seconds": 86400}});
    let parent = lent(&app, &delegation, bounds).await;
    let (_, read) = app.owner().get_delegation(&parent).await;
    let child = json!({"tenant_id": TENANT, "actions": ["payment.execute"], "parent_id": parent,
                       "delegator_id": read["delegation"]["delegate_id"], "currency": "EUR",
                       "delegate_id": "svc:agent:acme:support-bot",
                       "max_uses": {"count": 2, "window_seconds": 86400}});
    let made = app.owner().create_delegation(child).await.assert_status(201);
    let ask = under(made["delegation"]["id"].as_str().unwrap(), 1.0)
        .with("subject", "svc:agent:acme:support-bot");
    assert_eq!(allowed(&[&client], &ask, 5).await, 2);
    assert_eq!(allowed(&[&client], &under(&parent, 1.0), 5).await, 1);
}

/// A repeated call with the same key gets the same response and spends no budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_is_counted_once() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"max_uses": {"count": 1, "window_seconds": 86400}});
    let lent = lent(&app, &delegation, bounds).await;
    for _ in 0..3 {
        let keyed = client.evaluate_with(under(&lent, 1.0), &[("idempotency-key", "pay-1")]);
        assert_eq!(keyed.await.1["decision"], "allow");
    }
    assert_eq!(allowed(&[&client], &under(&lent, 1.0), 1).await, 0);
}

/// Simultaneous calls with the same key do not compete with each other for the rest of a budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_repeats_are_counted_once_and_all_answered() {
    let (app, client, delegation) = demo().await;
    for round in 0..4 {
        let bounds = json!({"max_uses": {"count": 2, "window_seconds": 86400}});
        let lent = lent(&app, &delegation, bounds).await;
        let key = format!("pay-{round}");
        let headers = [("idempotency-key", key.as_str())];
        let call = || client.evaluate_with(under(&lent, 1.0), &headers);
        let calls = (0..24).map(|_| call());
        let answers: Vec<_> = stream::iter(calls).buffer_unordered(24).collect().await;
        for (status, answer) in &answers {
            assert_eq!(*status, 200, "{answer:#}");
            assert_eq!(answer["decision_id"], answers[0].1["decision_id"], "{answer:#}");
        }
        assert_eq!(allowed(&[&client], &under(&lent, 1.0), 3).await, 1);
    }
}

/// The window can't be changed: another window would have its own counter, which starts at zero.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn narrowing_does_not_give_a_budget_back() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"max_uses": {"count": 2, "window_seconds": 86400}});
    let lent = lent(&app, &delegation, bounds).await;
    assert_eq!(allowed(&[&client], &under(&lent, 1.0), 3).await, 2);
    let wider = json!({"max_uses": {"count": 2, "window_seconds": 86401}});
    let (status, refused) = app.owner().narrow_delegation(&lent, wider).await;
    let field = &refused["details"][0]["field"];
    assert_eq!((status, field), (400, &json!("max_uses.window_seconds")));
    let fewer = json!({"max_uses": {"count": 1, "window_seconds": 86400}});
    assert_eq!(app.owner().narrow_delegation(&lent, fewer).await.0, 200);
    assert_eq!(allowed(&[&client], &under(&lent, 1.0), 1).await, 0);
}

/// Runs ten times, because requests that were decided concurrently might be in order by chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_spends_a_budget_in_the_order_of_its_requests() {
    let (app, client, delegation) = demo().await;
    for round in 0..10 {
        let bounds = json!({"max_total_amount": {"amount": "100", "window_seconds": 86400}});
        let lent = lent(&app, &delegation, bounds).await;
        let requests: Vec<Value> =
            [60.0, 30.0, 20.0, 50.0, 10.0].map(|amount| under(&lent, amount)).into();
        let answer = client.batch_evaluate(only("requests", &requests)).await.assert_status(200);
        let results = answer["results"].as_array().unwrap();
        let permits: Vec<bool> = results
            .iter()
            .map(|result| result["answer"]["reason_code"] != "constraint_exceeded")
            .collect();
        assert_eq!(permits, [true, true, false, false, true], "round {round}: {answer:#}");
    }
}

/// All requests of the batch are decided and wait at the fence when the tenant's authority changes.
/// Each is then decided again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_keeps_its_order_when_its_requests_are_decided_again() {
    let (app, client, delegation) = demo().await;
    let mut owner = app.database.owner().await;
    for round in 0..5 {
        let bounds = json!({"max_uses": {"count": 2, "window_seconds": 86400}});
        let lent = lent(&app, &delegation, bounds).await;
        let batch = only("requests", vec![under(&lent, 1.0); 20]);
        owner.batch_execute("SELECT pg_advisory_lock(4157001)").await.unwrap();
        let deciding = tokio::spawn({
            let client = client.clone();
            async move { client.batch_evaluate(batch).await }
        });
        tokio::time::sleep(Duration::from_millis(600)).await;
        let change = format!("UPDATE delegations SET notes = 'round {round}' WHERE id = '{lent}'");
        owner.batch_execute(&change).await.unwrap();
        owner.batch_execute("SELECT pg_advisory_unlock(4157001)").await.unwrap();
        let (status, answer) = deciding.await.unwrap();
        assert_eq!(status, 200, "{answer:#}");
        let results = answer["results"].as_array().unwrap();
        let permitted: Vec<usize> = (0..results.len())
            .filter(|place| results[*place]["answer"]["reason_code"] == "permission_granted")
            .collect();
        assert_eq!(permitted, [0, 1], "round {round}: {answer:#}");
    }
}
