//! Reality coupling: anchors, snapshots and their feeders, checks, drift.

mod anchors;
mod checks;
mod drift;
mod effects;
mod feeding;
mod overriders;
mod overrides;
mod signatures;
mod snapshots;

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};

use crate::support::{AGENT, Answered, Client, TENANT, TestApp};
use authority_process::clock::Clock;

/// An action that the demonstration does not use.
const ACTION: &str = "ledger.close";

/// The demonstration tenant, with a client of the installation's owner.
struct World {
    app: TestApp,
    owner: Client,
    /// The id of a person of the tenant.
    person: String,
}

impl World {
    async fn start() -> Self {
        let app = TestApp::seeded().await;
        app.demo().await;
        let owner = app.owner();
        let (_, people) = owner.list_principals("principal_class=human").await;
        let person = people["principals"][0]["id"].as_str().unwrap().to_owned();
        Self { app, owner, person }
    }

    /// Returns the body of an anchor that grounds [`ACTION`] and goes stale after a minute.
    fn anchor(&self, more: Value) -> Value {
        let body = json!({
            "tenant_id": TENANT, "anchor_type": "system_of_record", "display_name": "Ledger",
            "authority": {"owner_entity_id": self.person}, "status": "active",
            "grounds_actions": [ACTION], "freshness_contract": {"max_staleness_seconds": 60},
        });
        with(body, more)
    }

    async fn new_anchor(&self, more: Value) -> String {
        self.owner.create_reality_anchor(self.anchor(more)).await.assert_made("reality_anchor")
    }

    /// Creates a snapshot of an anchor, sampled this many seconds ago.
    async fn new_snapshot(&self, anchor: &str, seconds: i64, hash: &str) -> String {
        let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": ago(seconds),
                          "content_hash": hash});
        self.owner.create_reality_snapshot(body).await.assert_made("reality_snapshot")
    }

    async fn new_check(&self, more: Value) -> String {
        let body = json!({"tenant_id": TENANT, "action_id": ACTION, "coupling_result": "coupled",
                          "runtime_effect": "continue"});
        self.owner.create_coupling_check(with(body, more)).await.assert_made("coupling_check")
    }

    /// Runs a check and returns the run.
    async fn run(&self, check: &str) -> Value {
        let ran = self.owner.run_coupling_check(check).await.assert_status(202);
        ran["coupling_check"].clone()
    }

    /// Returns the drift events of a check, newest first.
    async fn drift(&self, check: &str) -> Vec<Value> {
        let (_, listed) = self.owner.list_drift_events(&format!("tenant_id={TENANT}")).await;
        let all = listed["drift_events"].as_array().unwrap().iter();
        all.filter(|event| event["check_id"] == check).cloned().collect()
    }

    /// Returns a client for another owner of the installation.
    fn another_owner(&self, name: &str) -> Client {
        let claims = json!({"sub": format!("dev|{name}"), "email": name,
                            "public_metadata": {"role": "owner"}});
        self.app.client(&self.app.token(&claims))
    }

    /// Records a decision on a check's run, with a rationale.
    async fn decide(&self, by: &Client, check: &str, decision: &str) -> (u16, Value) {
        by.decide_coupling_check(
            check,
            json!({"decision": decision, "rationale": "the ledger is being moved"}),
        )
        .await
    }

    /// Returns the types of the tenant's events so far, if they start with this text.
    async fn events(&self, start: &str) -> Vec<String> {
        let key = self.app.client(&self.app.api_key(TENANT, &["events:read"]).await);
        // The sequencer polls twice a second.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let (_, page) = key.list_events("limit=500").await;
        let all = page["events"].as_array().unwrap().iter();
        let types = all.filter_map(|event| event["event_type"].as_str());
        types.filter(|kind| kind.starts_with(start)).map(str::to_owned).collect()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass `json!` values")]
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Returns the RFC 3339 time this many seconds ago. A negative number gives a time in the future.
fn ago(seconds: i64) -> String {
    let at = Clock::default().now() - TimeDelta::seconds(seconds);
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Returns the field that a 400 response reports as invalid.
#[track_caller]
fn fault((status, answer): &(u16, Value)) -> String {
    assert_eq!(*status, 400, "{answer:#}");
    answer["details"][0]["field"].as_str().unwrap().to_owned()
}

/// Returns the status and the error code.
fn refusal((status, answer): &(u16, Value)) -> (u16, String) {
    (*status, answer["error"].as_str().unwrap_or_default().to_owned())
}
