//! What is erased by its age, and what a legal hold keeps from that.

use std::time::Duration;

use authority_core::{clock::Clock, worker::Supervisor};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{ANN, TENANT, World};

/// Runs the worker once, so many days from now.
async fn run(world: &World, days: i64, is_held: bool) {
    let clock = Clock::fixed(Clock::default().now() + TimeDelta::days(days));
    let supervisor = Supervisor::default();
    let store = world.app.database.store();
    supervisor.run([authority_registry::erase_by_age(store, clock, 730, is_held)]);
    for _ in 0..600 {
        if supervisor.statuses().reports()[0].since_success.is_some() {
            supervisor.shutdown().cancel();
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?}", supervisor.statuses().reports());
}

async fn set(world: &World, body: Value) {
    let (status, changed) = world.owner.patch(&format!("/api/v1/tenants/{TENANT}"), body).await;
    assert_eq!(status, 200, "{changed:#}");
}

/// Whether the approval's question is still shown, from the context of its decision.
async fn is_shown(world: &World, approval: &str) -> bool {
    let shown = world.shown(&format!("/api/v1/approvals/{approval}"), "approval").await;
    !shown["request"].is_null()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_go_when_their_tenant_says_so() {
    let world = World::start().await;
    let (_, approval) = world.held(&world.key, "Globex").await;
    run(&world, 1000, false).await;
    assert!(is_shown(&world, &approval).await, "none: kept");
    set(&world, json!({"retention": {"contexts_days": 30}})).await;
    run(&world, 29, false).await;
    assert!(is_shown(&world, &approval).await, "not old enough");
    set(&world, json!({"legal_hold": {"reason": "case 7"}})).await;
    run(&world, 31, false).await;
    assert!(is_shown(&world, &approval).await, "the tenant's hold");
    set(&world, json!({"legal_hold": null})).await;
    run(&world, 31, true).await;
    assert!(is_shown(&world, &approval).await, "the installation's hold");
    run(&world, 31, false).await;
    assert!(!is_shown(&world, &approval).await);
    // Those after them are found, too.
    let (_, later) = world.held(&world.key, "Initech").await;
    run(&world, 31, false).await;
    assert!(!is_shown(&world, &later).await);
    for bad in [json!({"contexts_days": 0}), json!({"snapshots_days": -1}), json!({"days": 1})] {
        let path = format!("/api/v1/tenants/{TENANT}");
        assert_eq!(world.owner.patch(&path, json!({"retention": bad})).await.0, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leads_are_emptied_unless_they_became_a_tenant() {
    let world = World::start().await;
    let (lost, won) = (world.lead(ANN).await, world.lead("lee@globex.example").await);
    let convert = format!("/api/v1/consultant-leads/{won}/convert");
    assert_eq!(world.owner.post(&convert, json!({"converted_tenant_id": TENANT})).await.0, 200);
    run(&world, 729, false).await;
    let path = format!("/api/v1/consultant-leads/{lost}");
    assert_eq!(world.shown(&path, "lead").await["submitter_email"], ANN);
    run(&world, 731, false).await;
    let emptied = world.shown(&path, "lead").await;
    assert_eq!(
        (&emptied["submitter_email"], &emptied["message"]),
        (&json!("erased@erased.invalid"), &Value::Null)
    );
    assert_eq!(super::dump::columns_with(&world.app, ANN).await, Vec::<String>::new());
    let kept = world.shown(&format!("/api/v1/consultant-leads/{won}"), "lead").await;
    assert_eq!(kept["submitter_email"], "lee@globex.example");
}
