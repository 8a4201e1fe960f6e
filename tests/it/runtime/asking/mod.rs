//! Repeated requests: approved ones are not held again, declined ones are denied for a set time,
//! and each agent's open requests are limited.

mod declined;
mod limits;
mod own;
mod ready;
mod spending;

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    demo,
    questions::{TENANT, act, approver, held, read},
};
use crate::support::{Answered, Client, Members, Plain, TestApp, asking, nothing, only};

async fn asked(client: &Client, ask: &Value) -> Value {
    client.evaluate(ask.clone()).await.assert_status(200)
}

/// Makes one of many simultaneous requests. Repeats a call that times out on a slow machine.
async fn answered(client: &Client, ask: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let (status, answer) = client.evaluate(ask.clone()).await;
        if status == 200 {
            return answer;
        }
        assert_eq!(status, 503, "{answer:#}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{answer:#}");
    }
}

async fn set(app: &TestApp, settings: Value) {
    app.owner().update_tenant("acme", settings).await.assert_status(200);
}

/// Makes a request that is held, and approves it. Returns the approval's id.
async fn approved(app: &TestApp, client: &Client, ask: &Value) -> String {
    let id = held(client, ask).await;
    let (_, approved) = act(&approver(app), &id, "approve", nothing()).await;
    assert_eq!(approved["state"], "approved", "{approved:#}");
    id
}

async fn decline(app: &TestApp, id: &str, body: Value) -> Value {
    let said = only("reason", "no such invoice").and(&body);
    let (status, declined) = act(&approver(app), id, "decline", said).await;
    assert_eq!((status, declined["state"].text()), (200, "declined"), "{declined:#}");
    declined
}

/// Returns the tenant's approvals in a state, oldest first.
async fn requests(app: &TestApp, state: &str) -> Vec<String> {
    let found = app
        .owner()
        .list_approvals(&format!("tenant_id={TENANT}&state={state}&limit=500"))
        .await
        .assert_status(200);
    let found = found["approvals"].as_array().unwrap().iter();
    found.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn citing(ask: &Value, id: &str) -> Value {
    ask.clone().with("approval_id", id)
}
