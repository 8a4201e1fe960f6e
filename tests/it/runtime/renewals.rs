//! Renewed delegations: no gap, no second budget, no lost stop.

mod budgets;
mod chains;
mod gap;
mod policies;
mod rows;
mod stops;

use serde_json::{Value, json};

use crate::support::{AGENT, Answered, Client, Members, TENANT, TestApp, asking, nothing, only};

const END: &str = "2100-01-01T00:00:00Z";

#[track_caller]
fn id(answer: &Value) -> String {
    answer["delegation"]["id"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

/// Renews a delegation as the owner, with further changes. Returns the successor's id.
async fn renew(app: &TestApp, delegation: &str, more: Value) -> String {
    let made = try_renew(app, delegation, more).await.assert_status(200);
    id(&made)
}

async fn try_renew(app: &TestApp, delegation: &str, more: Value) -> (u16, Value) {
    let body = only("expires_at", END).and(&more);
    app.owner().renew_delegation(delegation, body).await
}

/// Creates a delegation like the demonstration's, with further fields. Returns its id.
async fn lend(app: &TestApp, delegation: &str, more: Value) -> String {
    let first = read(app, delegation).await;
    let body = json!({"tenant_id": TENANT, "actions": ["payment.*"], "currency": "EUR",
                          "delegator_id": first["delegator_id"], "delegate_id": AGENT})
    .and(&more);
    let made = app.owner().create_delegation(body).await.assert_status(201);
    id(&made)
}

async fn read(app: &TestApp, delegation: &str) -> Value {
    let read = app.owner().get_delegation(delegation).await.assert_status(200);
    read["delegation"].clone()
}

async fn act(app: &TestApp, delegation: &str, verb: &str) {
    app.owner().act_on_delegation(delegation, verb, nothing()).await.assert_status(200);
}

fn under(delegation: &str, amount: f64) -> Value {
    asking(amount, "DE").with("delegation_id", delegation)
}

/// Returns the reason code of a small payment under this delegation.
async fn reason(client: &Client, delegation: &str) -> String {
    answer(client, under(delegation, 1.0)).await["reason_code"].as_str().unwrap().to_owned()
}

/// Returns the answer to a request, which is sent again if authority changed too often to decide.
async fn answer(client: &Client, ask: Value) -> Value {
    for _ in 0..50 {
        let (status, answer) = client.evaluate(ask.clone()).await;
        if (status, &answer["error"]) != (503, &json!("unavailable")) {
            assert_eq!(status, 200, "{answer:#}");
            return answer;
        }
    }
    panic!("no answer");
}

/// Returns the delegations that permitted a request, from the used one to the root.
async fn chain(app: &TestApp, answer: &Value) -> Value {
    assert_eq!(answer["decision"], "allow", "{answer:#}");
    let shown = app
        .owner()
        .inspect_decision(answer["decision_id"].as_str().unwrap())
        .await
        .assert_status(200);
    shown["decision"]["record"]["verdict"]["authority"]["chain"].clone()
}

async fn quarantine(app: &TestApp, delegation: &str) -> String {
    let body = json!({"tenant_id": TENANT, "delegation_id": delegation, "reason": "test"});
    let made = app.owner().create_quarantine(body).await.assert_status(201);
    made["quarantine"]["id"].as_str().unwrap().to_owned()
}

async fn release(app: &TestApp, quarantine: &str) {
    assert_eq!(app.owner().release_quarantine(quarantine).await.0, 200);
}
