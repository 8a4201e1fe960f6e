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

use crate::support::{Client, TestApp};
use authority_core::clock::Clock;

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:invoice-bot";
/// No action of the demonstration, so that nothing else concerns it.
const ACTION: &str = "ledger.close";

/// The demonstration tenant, as the installation's owner sees it.
struct World {
    app: TestApp,
    owner: Client,
    /// A person of the tenant.
    person: String,
}

impl World {
    async fn start() -> Self {
        let app = TestApp::seeded().await;
        app.demo().await;
        let owner = app.owner();
        let (_, people) = owner.get("/api/v1/principals?principal_class=human").await;
        let person = people["principals"][0]["id"].as_str().unwrap().to_owned();
        Self { app, owner, person }
    }

    /// A body of an anchor that grounds [`ACTION`] and goes stale after a minute.
    fn anchor(&self, more: Value) -> Value {
        let body = json!({
            "tenant_id": TENANT, "anchor_type": "system_of_record", "display_name": "Ledger",
            "authority": {"owner_entity_id": self.person}, "status": "active",
            "grounds_actions": [ACTION], "freshness_contract": {"max_staleness_seconds": 60},
        });
        with(body, more)
    }

    async fn new_anchor(&self, more: Value) -> String {
        self.made("reality-anchors", "reality_anchor", self.anchor(more)).await
    }

    /// A snapshot of an anchor, sampled so many seconds ago.
    async fn new_snapshot(&self, anchor: &str, seconds: i64, hash: &str) -> String {
        let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": ago(seconds),
                          "content_hash": hash});
        self.made("reality-snapshots", "reality_snapshot", body).await
    }

    async fn new_check(&self, more: Value) -> String {
        let body = json!({"tenant_id": TENANT, "action_id": ACTION, "coupling_result": "coupled",
                          "runtime_effect": "continue"});
        self.made("reality-coupling-checks", "coupling_check", with(body, more)).await
    }

    /// The check after a run.
    async fn run(&self, check: &str) -> Value {
        let path = format!("/api/v1/reality-coupling-checks/{check}/check");
        let (status, ran) = self.owner.post(&path, json!({})).await;
        assert_eq!(status, 202, "{ran:#}");
        ran["coupling_check"].clone()
    }

    /// Drift events of a check, newest first.
    async fn drift(&self, check: &str) -> Vec<Value> {
        let path = format!("/api/v1/stable-drift-events?tenant_id={TENANT}");
        let (_, listed) = self.owner.get(&path).await;
        let all = listed["drift_events"].as_array().unwrap().iter();
        all.filter(|event| event["check_id"] == check).cloned().collect()
    }

    async fn made(&self, collection: &str, kind: &str, body: Value) -> String {
        let (status, made) = self.owner.post(&format!("/api/v1/{collection}"), body).await;
        assert_eq!(status, 201, "{made:#}");
        made[kind]["id"].as_str().unwrap().to_owned()
    }

    /// Another of the installation's owners.
    fn another_owner(&self, name: &str) -> Client {
        let claims = json!({"sub": format!("dev|{name}"), "email": name,
                            "public_metadata": {"role": "owner"}});
        self.app.client(&self.app.token(&claims))
    }

    /// Decides on a check, with a rationale.
    async fn decide(&self, by: &Client, check: &str, decision: &str) -> (u16, Value) {
        let path = format!("/api/v1/reality-coupling-checks/{check}/decide");
        by.post(&path, json!({"decision": decision, "rationale": "the ledger is being moved"}))
            .await
    }

    /// Types of the tenant's events so far that begin so.
    async fn events(&self, start: &str) -> Vec<String> {
        let key = self.app.client(&self.app.api_key(TENANT, &["events:read"]).await);
        // The sequencer polls twice a second.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let (_, page) = key.get("/v1/events?limit=500").await;
        let all = page["events"].as_array().unwrap().iter();
        let types = all.filter_map(|event| event["event_type"].as_str());
        types.filter(|kind| kind.starts_with(start)).map(str::to_owned).collect()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `json!` makes it")]
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// RFC 3339, so many seconds ago; ahead if negative.
fn ago(seconds: i64) -> String {
    let at = Clock::default().now() - TimeDelta::seconds(seconds);
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The member at fault of a 400.
#[track_caller]
fn fault((status, answer): &(u16, Value)) -> String {
    assert_eq!(*status, 400, "{answer:#}");
    answer["details"][0]["field"].as_str().unwrap().to_owned()
}

/// The status and error code.
fn refusal((status, answer): &(u16, Value)) -> (u16, String) {
    (*status, answer["error"].as_str().unwrap_or_default().to_owned())
}
