//! Renewed delegations: no gap, no second budget, no lost stop.

mod budgets;
mod chains;
mod gap;
mod policies;
mod rows;
mod stops;

use serde_json::{Value, json};

use crate::support::{Client, TestApp, asking};

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:invoice-bot";
const END: &str = "2100-01-01T00:00:00Z";

#[track_caller]
fn id(answer: &Value) -> String {
    answer["delegation"]["id"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

/// Renews a delegation as the owner, with further changes. Returns the successor's id.
async fn renew(app: &TestApp, delegation: &str, more: Value) -> String {
    let (status, made) = try_renew(app, delegation, more).await;
    assert_eq!(status, 200, "{made:#}");
    id(&made)
}

async fn try_renew(app: &TestApp, delegation: &str, more: Value) -> (u16, Value) {
    let mut body = json!({"expires_at": END});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    app.owner().post(&format!("/api/v1/delegations/{delegation}/renew"), body).await
}

/// Creates a delegation like the demonstration's, with further fields. Returns its id.
async fn lend(app: &TestApp, delegation: &str, more: Value) -> String {
    let first = read(app, delegation).await;
    let mut body = json!({"tenant_id": TENANT, "actions": ["payment.*"], "currency": "EUR",
                          "delegator_id": first["delegator_id"], "delegate_id": AGENT});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, made) = app.owner().post("/api/v1/delegations", body).await;
    assert_eq!(status, 201, "{made:#}");
    id(&made)
}

async fn read(app: &TestApp, delegation: &str) -> Value {
    let (status, read) = app.owner().get(&format!("/api/v1/delegations/{delegation}")).await;
    assert_eq!(status, 200, "{read:#}");
    read["delegation"].clone()
}

async fn act(app: &TestApp, delegation: &str, verb: &str) {
    let path = format!("/api/v1/delegations/{delegation}/{verb}");
    let (status, done) = app.owner().post(&path, json!({})).await;
    assert_eq!(status, 200, "{done:#}");
}

fn under(delegation: &str, amount: f64) -> Value {
    let mut ask = asking(amount, "DE");
    ask["delegation_id"] = json!(delegation);
    ask
}

/// Returns the reason code of a small payment under this delegation.
async fn reason(client: &Client, delegation: &str) -> String {
    answer(client, under(delegation, 1.0)).await["reason_code"].as_str().unwrap().to_owned()
}

/// Returns the answer to a request, which is sent again if authority changed too often to decide.
async fn answer(client: &Client, ask: Value) -> Value {
    for _ in 0..50 {
        let (status, answer) = client.post("/api/v1/runtime/evaluate", ask.clone()).await;
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
    let path = format!("/api/v1/decisions/{}", answer["decision_id"].as_str().unwrap());
    let (status, shown) = app.owner().get(&path).await;
    assert_eq!(status, 200, "{shown:#}");
    shown["decision"]["record"]["verdict"]["authority"]["chain"].clone()
}

async fn quarantine(app: &TestApp, delegation: &str) -> String {
    let body = json!({"tenant_id": TENANT, "delegation_id": delegation, "reason": "test"});
    let (status, made) = app.owner().post("/api/v1/quarantines", body).await;
    assert_eq!(status, 201, "{made:#}");
    made["quarantine"]["id"].as_str().unwrap().to_owned()
}

async fn release(app: &TestApp, quarantine: &str) {
    let path = format!("/api/v1/quarantines/{quarantine}/release");
    assert_eq!(app.owner().post(&path, json!({})).await.0, 200);
}
