//! The log of a tenant's events.

mod demanded;
mod families;
mod numbered;
mod pages;
mod rows;
mod streams;

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Answered, Client, TestApp, asking};

pub(super) const TENANT: &str = "svc:tenant:acme";
pub(super) const AGENT: &str = "svc:agent:acme:invoice-bot";
/// The longest wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(30);

async fn demo() -> (TestApp, Client, String) {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    (app, client, demo.delegation_id)
}

/// All events of the tenant, oldest first.
pub(super) async fn events(app: &TestApp) -> Vec<Value> {
    let owner = app.owner();
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = owner
            .list_events(&format!("tenant_id={TENANT}&limit=500&after={after}"))
            .await
            .assert_status(200);
        events.extend(page["events"].as_array().unwrap().clone());
        after = page["next_after"].as_i64().unwrap();
        if page["next_after"] == page["head"] {
            return events;
        }
    }
}

#[track_caller]
fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event_type"].as_str().unwrap()).collect()
}

/// Waits until the tenant has an event of the type about the subject.
async fn told(app: &TestApp, event_type: &str, subject: &str) -> Value {
    let begun = Instant::now();
    loop {
        let found = events(app)
            .await
            .into_iter()
            .find(|event| event["event_type"] == event_type && event["subject_ref"] == subject);
        if let Some(event) = found {
            return event;
        }
        assert!(begun.elapsed() < PATIENCE, "no {event_type} of {subject}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes a decision; returns its id.
pub(super) async fn decided(client: &Client, amount: f64, place: &str) -> String {
    let answer = client.evaluate(asking(amount, place)).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}
