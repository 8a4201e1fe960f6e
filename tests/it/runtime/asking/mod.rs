//! Repeated requests: approved ones are not held again, declined ones are denied for a set time,
//! and each agent's open requests are limited.

mod declined;
mod limits;
mod own;
mod ready;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    demo,
    questions::{TENANT, act, approver, held, read},
};
use crate::support::{Client, TestApp, asking};

const EVALUATE: &str = "/api/v1/runtime/evaluate";

async fn asked(client: &Client, ask: &Value) -> Value {
    let (status, answer) = client.post(EVALUATE, ask.clone()).await;
    assert_eq!(status, 200, "{answer:#}");
    answer
}

/// Makes one of many simultaneous requests. Repeats a call that times out on a slow machine.
async fn answered(client: &Client, ask: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let (status, answer) = client.post(EVALUATE, ask.clone()).await;
        if status == 200 {
            return answer;
        }
        assert_eq!(status, 503, "{answer:#}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{answer:#}");
    }
}

async fn set(app: &TestApp, settings: Value) {
    let (status, tenant) = app.owner().patch("/api/v1/tenants/acme", settings).await;
    assert_eq!(status, 200, "{tenant:#}");
}

/// Makes a request that is held, and approves it. Returns the approval's id.
async fn approved(app: &TestApp, client: &Client, ask: &Value) -> String {
    let id = held(client, ask).await;
    let (_, approved) = act(&approver(app), &id, "approve", json!({})).await;
    assert_eq!(approved["state"], "approved", "{approved:#}");
    id
}

async fn decline(app: &TestApp, id: &str, body: Value) -> Value {
    let mut said = json!({"reason": "no such invoice"});
    said.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    let (status, declined) = act(&approver(app), id, "decline", said).await;
    assert_eq!((status, &declined["state"]), (200, &json!("declined")), "{declined:#}");
    declined
}

/// Returns the tenant's approvals in a state, oldest first.
async fn requests(app: &TestApp, state: &str) -> Vec<String> {
    let path = format!("/api/v1/approvals?tenant_id={TENANT}&state={state}&limit=500");
    let (status, found) = app.owner().get(&path).await;
    assert_eq!(status, 200, "{found:#}");
    let found = found["approvals"].as_array().unwrap().iter();
    found.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn citing(ask: &Value, id: &str) -> Value {
    let mut ask = ask.clone();
    ask["approval_id"] = json!(id);
    ask
}
