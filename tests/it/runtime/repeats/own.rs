//! A repeat of a decision uses the decision's own time, spending and approval.

use std::time::Duration;

use serde_json::{Value, json};

use super::{altered, demo, doors::over_rest, world::World};
use crate::{
    runtime::questions::{act, approver, held},
    support::{Answered, Client, Members, Plain, asking, new_principal, nothing, only},
};

async fn keyed(client: &Client, ask: &Value, key: &str) -> (u16, Value) {
    client.evaluate_with(ask.clone(), &[("idempotency-key", key)]).await
}

/// Checks that the response has status 200 and equals the first one.
#[track_caller]
fn is_repeated(answer: &(u16, Value), first: &Value) {
    assert_eq!((answer.0, &answer.1), (200, first));
}

#[track_caller]
fn is_refused(answer: &(u16, Value), word: &str) {
    assert_eq!((answer.0, answer.1["error"].text()), (409, "decision_stopped"), "{:#}", answer.1);
    let message = answer.1["message"].as_str().unwrap();
    assert!(message.contains(word), "{word}: {message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_repeated_after_its_valid_until() {
    let world = Box::pin(World::new()).await;
    world.does(("PATCH", "tenants/acme".to_owned(), only("valid_for_seconds", 2))).await;
    let agent = world.agent(0).await;
    let ask = agent.asking(true);
    let first = over_rest(&world.client, &ask, "soon").await;
    assert!(first.iter().all(Result::is_ok), "{first:?}");
    let mut refused = ask.clone();
    refused["context"]["amount"] = 5000.into();
    let denied = keyed(&world.client, &refused, "denied").await;
    assert_eq!(denied.1["decision"], "deny", "{:#}", denied.1);
    tokio::time::sleep(Duration::from_millis(2200)).await;
    for repeat in over_rest(&world.client, &ask, "soon").await {
        let (code, message) = repeat.unwrap_err();
        assert_eq!(code, "decision_stopped", "{message}");
        assert!(message.contains("valid_until"), "{message}");
    }
    // The request is still permitted under another key. A denial is repeated unchanged.
    assert!(over_rest(&world.client, &ask, "later").await.iter().all(Result::is_ok));
    is_repeated(&keyed(&world.client, &refused, "denied").await, &denied.1);
}

/// Neither the decision's own spending nor later spending prevents a repeat. A bound that the
/// decision alone exceeds prevents it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_own_spending_does_not_count_against_it() {
    let world = Box::pin(World::new()).await;
    let agent = world.agent(0).await;
    let once = json!({"max_uses": {"count": 2, "window_seconds": 86_400},
                      "max_total_amount": {"amount": "15", "window_seconds": 86_400}});
    world.does(agent.narrowed(once)).await;
    let ask = agent.asking(true);
    let (_, first) = keyed(&world.client, &ask, "one").await;
    assert_eq!(first["decision"], "allow", "{first:#}");
    is_repeated(&keyed(&world.client, &ask, "one").await, &first);
    assert_eq!(keyed(&world.client, &ask, "two").await.1["reason_code"], "constraint_exceeded");
    let mut small = ask.clone();
    small["context"]["amount"] = 5.into();
    assert_eq!(keyed(&world.client, &small, "three").await.1["decision"], "allow");
    is_repeated(&keyed(&world.client, &ask, "one").await, &first);
    // The decision spent one use, which the narrower bound of one use still covers.
    world.does(agent.narrowed(json!({"max_uses": {"count": 1, "window_seconds": 86_400}}))).await;
    is_repeated(&keyed(&world.client, &ask, "one").await, &first);
    let total = json!({"max_total_amount": {"amount": "9.99", "window_seconds": 86_400}});
    world.does(agent.narrowed(total)).await;
    is_refused(&keyed(&world.client, &ask, "one").await, "constraint_exceeded");
}

/// The approval that a decision used still satisfies the hold when it is repeated, as long as the
/// approval's acts count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_approval_that_it_spent_is_its_own_while_its_acts_count() {
    let (app, client, _) = demo().await;
    let mut ask = asking(25_000.0, "DE");
    let approval = held(&client, &ask).await;
    let (_, approved) = act(&approver(&app), &approval, "approve", nothing()).await;
    assert_eq!(approved["state"], "approved", "{approved:#}");
    ask["approval_id"] = json!(approval);
    let (_, first) = keyed(&client, &ask, "one").await;
    assert_eq!(first["decision"], "allow", "{first:#}");
    // Cited by another request, the approval does not permit, because this decision used it.
    assert_eq!(keyed(&client, &ask, "two").await.1["decision"], "require_approval");
    is_repeated(&keyed(&client, &ask, "one").await, &first);
    let body = new_principal("human", "Ann").with("email", "ann@example.org");
    let made = app.owner().create_principal(body).await.assert_status(201);
    is_repeated(&keyed(&client, &ask, "one").await, &first);
    app.owner()
        .update_principal(made["principal"]["id"].as_str().unwrap(), only("state", "suspended"))
        .await
        .assert_status(200);
    is_refused(&keyed(&client, &ask, "one").await, "approval_threshold_breach");
}

/// A decision is not repeated if its context is erased or its row is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_was_erased_is_not_repeated() {
    let (app, client, _) = demo().await;
    let ask = asking(10.0, "DE");
    let (_, first) = keyed(&client, &ask, "one").await;
    assert_eq!(first["decision"], "allow", "{first:#}");
    altered(&app, "UPDATE decisions SET context = ''").await;
    is_refused(&keyed(&client, &ask, "one").await, "read back");
    altered(&app, "DELETE FROM decisions").await;
    is_refused(&keyed(&client, &ask, "one").await, "read back");
}
