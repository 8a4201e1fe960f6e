//! Erasure by age, and legal holds that prevent it.

use std::time::Duration;

use authority_crypto::sha256;
use authority_evidence::digest_text;
use authority_process::{clock::Clock, worker::Supervisor};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{ANN, BOB, TENANT, World};
use crate::support::{Answered, Plain, only};

/// Runs the worker once, as if this many days had passed.
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
    world.owner.update_tenant(TENANT, body).await.assert_status(200);
}

/// Returns whether the approval can still show its request, which it reads from the decision's
/// context.
async fn is_shown(world: &World, approval: &str) -> bool {
    let shown = world.owner.get_approval(approval).await.assert_shown("approval");
    !shown["request"].is_null()
}

/// Returns the requester's own reason that the approval shows.
async fn reason(world: &World, approval: &str) -> Value {
    world.owner.get_approval(approval).await.assert_shown("approval")["justification"].take()
}

/// Opens a request for the same document, and returns its id and the number of its warnings.
async fn invoiced(world: &World, amount: f64) -> (String, usize) {
    let mut ask = crate::support::asking(amount, "DE");
    ask["context"]["payee"] = "Globex".into();
    ask["context"]["invoice"] = "R-1".into();
    ask["justification"] = "the supplier waits".into();
    let (_, held) = world.key.evaluate(ask).await;
    let id = held["approval_id"].as_str().unwrap().to_owned();
    let shown = world.owner.get_approval(&id).await.assert_shown("approval");
    (id, shown["similar"].as_array().unwrap().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_go_when_their_tenant_says_so() {
    let world = World::start().await;
    let (approval, _) = invoiced(&world, 25_000.0).await;
    run(&world, 1000, false).await;
    assert!(is_shown(&world, &approval).await, "none: kept");
    set(&world, json!({"retention": {"contexts_days": 30}})).await;
    run(&world, 29, false).await;
    assert!(is_shown(&world, &approval).await, "not old enough");
    set(&world, json!({"legal_hold": {"reason": "case 7"}})).await;
    run(&world, 31, false).await;
    assert!(is_shown(&world, &approval).await, "the tenant's hold");
    set(&world, only("legal_hold", Value::Null)).await;
    run(&world, 31, true).await;
    assert!(is_shown(&world, &approval).await, "the installation's hold");
    assert_eq!(invoiced(&world, 25_001.0).await.1, 1);
    assert_eq!(reason(&world, &approval).await, "the supplier waits");
    run(&world, 31, false).await;
    assert!(!is_shown(&world, &approval).await);
    assert_eq!(reason(&world, &approval).await, Value::Null);
    // The codes by which requests are compared are erased with the context.
    assert_eq!(invoiced(&world, 25_002.0).await.1, 0);
    // A later run erases contexts that are newer.
    let (_, later) = world.held(&world.key, "Initech").await;
    run(&world, 31, false).await;
    assert!(!is_shown(&world, &later).await);
    for bad in [only("contexts_days", 0), only("snapshots_days", -1), only("days", 1)] {
        assert_eq!(
            world.owner.update_tenant(TENANT, only("retention", &bad)).await.0,
            400,
            "{bad}"
        );
    }
}

/// Erasing a snapshot removes its observations. Its times, digests and derived results remain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observations_go_when_their_tenant_says_so() {
    let world = World::start().await;
    let boss = world.human(BOB, "dev|bob").await;
    let anchor = json!({"tenant_id": TENANT, "anchor_type": "system_of_record", "display_name": "ERP",
                        "authority": {"owner_entity_id": boss}});
    let anchor = world.owner.create_reality_anchor(anchor).await.assert_made("reality_anchor");
    let hash = digest_text(&sha256(br#"{"cash":5}"#));
    let snapshot = json!({"tenant_id": TENANT, "anchor_id": anchor, "content_hash": hash,
                          "sampled_at": Clock::default().now().to_rfc3339(),
                          "content_summary": {"cash": 5}, "content_ref": "file:cash",
                          "observations": [{"path": "/cash", "value": 5}]});
    let id = world.owner.create_reality_snapshot(snapshot).await.assert_made("reality_snapshot");
    let shown =
        async || world.owner.get_reality_snapshot(&id).await.assert_shown("reality_snapshot");
    let before = shown().await;
    let observed = ["content_summary", "content_ref", "observations"];
    let is_there = async || {
        let now = shown().await;
        observed.iter().all(|member| now[member] == before[member])
    };
    run(&world, 1000, false).await;
    assert!(is_there().await, "none: kept");
    set(&world, json!({"retention": {"snapshots_days": 30}})).await;
    run(&world, 29, false).await;
    assert!(is_there().await, "not old enough");
    set(&world, json!({"legal_hold": {"reason": "case 7"}})).await;
    run(&world, 31, false).await;
    assert!(is_there().await, "the tenant's hold");
    set(&world, only("legal_hold", Value::Null)).await;
    run(&world, 31, true).await;
    assert!(is_there().await, "the installation's hold");
    run(&world, 31, false).await;
    let after = shown().await;
    assert_eq!(observed.map(|member| &after[member]), [&Value::Null, &Value::Null, &json!([])]);
    for member in ["content_hash", "observations_hash", "sampled_at", "anchor_id"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    let (status, verified) = world.owner.verify_reality_snapshot(&id).await;
    assert_eq!(
        (status, verified["reality_snapshot"]["verification"]["content"].text()),
        (200, "erased"),
        "{verified:#}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leads_are_emptied_unless_they_became_a_tenant() {
    let world = World::start().await;
    let (lost, won) = (world.lead(ANN).await, world.lead("lee@globex.example").await);
    assert_eq!(world.owner.convert_lead(&won, only("converted_tenant_id", TENANT)).await.0, 200);
    run(&world, 729, false).await;
    assert_eq!(world.owner.get_lead(&lost).await.assert_shown("lead")["submitter_email"], ANN);
    run(&world, 731, false).await;
    let emptied = world.owner.get_lead(&lost).await.assert_shown("lead");
    assert_eq!(
        (emptied["submitter_email"].text(), &emptied["message"]),
        ("erased@erased.invalid", &Value::Null)
    );
    assert_eq!(super::dump::columns_with(&world.app, ANN).await, Vec::<String>::new());
    let kept = world.owner.get_lead(&won).await.assert_shown("lead");
    assert_eq!(kept["submitter_email"], "lee@globex.example");
}
