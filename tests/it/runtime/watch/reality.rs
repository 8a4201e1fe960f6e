//! Stale or changed reality ends a permission, by a write or by the passing of time.

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};

use super::{AGENT, Lines, TENANT, asking, demo};
use crate::support::{Answered, Client, Members, Plain, TestApp};
use authority_process::clock::Clock;

/// Creates an anchor that grounds payments and goes stale after this many seconds.
async fn anchored(app: &TestApp, seconds: u32) -> String {
    let owner = app.owner();
    let (_, people) = owner.list_principals("principal_class=human").await;
    let body = json!({
        "tenant_id": TENANT, "anchor_type": "financial_context", "display_name": "Reference rates",
        "authority": {"owner_entity_id": people["principals"][0]["id"]}, "status": "active",
        "grounds_actions": ["payment.*"],
        "freshness_contract": {"max_staleness_seconds": seconds},
    });
    let made = owner.create_reality_anchor(body).await.assert_status(201);
    made["reality_anchor"]["id"].as_str().unwrap().to_owned()
}

/// Stores an observation of an anchor at this time.
async fn observed(app: &TestApp, anchor: &str, sampled_at: &str, hash: &str) {
    let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": sampled_at,
                      "content_hash": hash});
    app.owner().create_reality_snapshot(body).await.assert_status(201);
}

fn now() -> String {
    Clock::default().now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

async fn evaluated(client: &Client, key: &str) -> (u16, Value) {
    let headers = [("idempotency-key", key)];
    client.evaluate_with(asking(10.0, "DE"), &headers).await
}

/// An anchor goes stale without a write. The next decision, the stream and the repeat all notice it
/// in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_that_goes_stale_ends_a_permission_without_a_write() {
    let (app, client, _) = demo().await;
    let anchor = anchored(&app, 4).await;
    let sampled_at = now();
    observed(&app, &anchor, &sampled_at, "sha256:1").await;
    let (_, allowed) = evaluated(&client, "pay-1").await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    let conditions = allowed["stop_conditions"].as_array().unwrap();
    assert!(conditions.contains(&json!("reality.decoupled")), "{allowed:#}");
    let stale: chrono::DateTime<chrono::Utc> = sampled_at.parse().unwrap();
    let stale = stale + TimeDelta::seconds(4);
    let until: chrono::DateTime<chrono::Utc> =
        allowed["valid_until"].as_str().unwrap().parse().unwrap();
    assert!(until <= stale, "{until} is after {stale}");
    let (mut lines, first) = Lines::stops(&client, allowed["decision_id"].as_str().unwrap()).await;
    let event = lines.last().await;
    assert!(Clock::default().now() >= stale);
    assert_eq!(event["stop_condition"], "reality.decoupled", "{event:#}");
    assert_eq!(event["reason_code"], "reality_revalidation_required", "{event:#}");
    assert_eq!(event["authority_revision"], first["authority_revision"], "the revision changed");
    let (status, again) = evaluated(&client, "pay-1").await;
    assert_eq!((status, again["error"].text()), (409, "decision_stopped"), "{again:#}");
    let (_, held) = evaluated(&client, "pay-2").await;
    assert_eq!(held["reason_code"], "reality_revalidation_required", "{held:#}");
    observed(&app, &anchor, &now(), "sha256:2").await;
    let (_, allowed) = evaluated(&client, "pay-3").await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sources_that_differ_end_a_permission() {
    let (app, client, _) = demo().await;
    let anchor = anchored(&app, 3600).await;
    let sampled_at = now();
    observed(&app, &anchor, &sampled_at, "sha256:1").await;
    let (_, allowed) = evaluated(&client, "pay-1").await;
    let (mut lines, _) = Lines::stops(&client, allowed["decision_id"].as_str().unwrap()).await;
    // An observation with an older time has no effect.
    observed(&app, &anchor, "2026-01-01T00:00:00Z", "sha256:0").await;
    assert_eq!(evaluated(&client, "pay-1").await.0, 200);
    observed(&app, &anchor, &sampled_at, "sha256:2").await;
    let event = lines.last().await;
    assert_eq!(event["stop_condition"], "reality.decoupled", "{event:#}");
    assert_eq!(event["reason_code"], "reality_decoupled", "{event:#}");
    let (status, again) = evaluated(&client, "pay-1").await;
    assert_eq!((status, again["error"].text()), (409, "decision_stopped"), "{again:#}");
}

/// An approval covers only drift that began before it. With such an approval the permission
/// continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_is_of_what_had_begun() {
    let (app, client, _) = demo().await;
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let approved = async |answer: &Value| {
        let id = answer["approval_id"].as_str().unwrap().to_owned();
        ann.approve_approval(&id).await.assert_status(200);
        id
    };
    let citing = |id: &str| asking(25_000.0, "DE").with("approval_id", id);
    let (_, held) = client.evaluate(asking(25_000.0, "DE")).await;
    let early = approved(&held).await;
    let check = json!({"tenant_id": TENANT, "action_id": "payment.execute",
                       "coupling_result": "decoupling_detected",
                       "runtime_effect": "require_human_review"});
    let (_, check) = app.owner().create_coupling_check(check).await;
    let drift = json!({"tenant_id": TENANT, "check_id": check["coupling_check"]["id"],
                       "action_id": "payment.execute", "drift_type": "stable_drift",
                       "severity": "high", "actor_entity_id": AGENT});
    app.owner().create_drift_event(drift).await.assert_status(201);
    let (_, held) = client.evaluate(citing(&early)).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let (_, again) = client.evaluate(asking(25_000.0, "DE")).await;
    let late = approved(&again).await;
    assert_ne!(late, early);
    let (_, allowed) = client.evaluate(citing(&late)).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    // `Lines::stops` requires a heartbeat first, which shows that the permission stands despite the
    // open drift.
    let (_lines, first) = Lines::stops(&client, allowed["decision_id"].as_str().unwrap()).await;
    assert_eq!(first["kind"], "heartbeat");
}
