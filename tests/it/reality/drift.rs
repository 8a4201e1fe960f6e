//! Drift events: reports, operations, resolutions, and their effects on other records.

use serde_json::{Value, json};

use super::{ACTION, AGENT, TENANT, World, fault, refusal};
use crate::support::{Answered, Plain, nothing, only};

/// Reports a drift event and returns its id.
async fn reported(world: &World, more: Value) -> String {
    let check = world.new_check(nothing()).await;
    let body = json!({"tenant_id": TENANT, "check_id": check, "action_id": ACTION,
                      "drift_type": "stable_drift", "severity": "low"});
    world.owner.create_drift_event(super::with(body, more)).await.assert_made("drift_event")
}

async fn verb(world: &World, id: &str, verb: &str, body: Value) -> (u16, Value) {
    world.owner.act_on_drift_event(id, verb, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_effect_of_a_report_is_by_its_severity_unless_it_says() {
    let world = World::start().await;
    for (severity, effect) in [
        ("low", "continue_with_warning"),
        ("medium", "require_revalidation"),
        ("high", "require_human_review"),
        ("critical", "quarantine"),
    ] {
        let id =
            reported(&world, json!({"severity": severity, "drift_type": "cross_ledger_fx"})).await;
        let event = world.owner.get_drift_event(&id).await.1["drift_event"].clone();
        assert_eq!(event["recommended_runtime_effect"], effect);
        assert_eq!((event["status"].text(), event["result_source"].text()), ("open", "reported"));
        assert!(event["detected_at"].is_string());
    }
    let id = reported(&world, only("recommended_runtime_effect", "deny")).await;
    let (_, event) = world.owner.get_drift_event(&id).await;
    assert_eq!(event["drift_event"]["recommended_runtime_effect"], "deny");
    let check = world.new_check(nothing()).await;
    let body = json!({"tenant_id": TENANT, "check_id": check, "action_id": ACTION,
                      "drift_type": "stable_drift", "severity": "low"});
    for (more, field) in [
        (only("drift_type", "crossed"), "drift_type"),
        (only("drift_type", "cross_"), "drift_type"),
        (only("check_id", "svc:coupling_check:none"), "check_id"),
        (only("detected_at", super::ago(-60)), "detected_at"),
        (only("anchors_implicated", ["none"]), "anchors_implicated[0]"),
    ] {
        let answer = world.owner.create_drift_event(super::with(body.clone(), more)).await;
        assert_eq!(fault(&answer), field);
    }
    // Admins and auditors are notified.
    let auditor = world.app.client(&world.app.member_token(TENANT, "auditor"));
    let (_, told) = auditor.list_notifications("").await;
    assert!(told.to_string().contains("reality.drift_detected"), "{told:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_moves_a_resolved_event() {
    let world = World::start().await;
    let id = reported(&world, nothing()).await;
    let (status, seen) = verb(&world, &id, "acknowledge", only("note", "seen")).await;
    assert_eq!((status, seen["drift_event"]["status"].text()), (200, "acknowledged"));
    assert_eq!(
        fault(&verb(&world, &id, "resolve", only("resolution", "tolerated")).await),
        "rationale"
    );
    assert_eq!(
        fault(&verb(&world, &id, "resolve", only("resolution", "ignored")).await),
        "resolution"
    );
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    let (status, resolved) = verb(&world, &id, "resolve", tolerated.clone()).await;
    assert_eq!((status, resolved["drift_event"]["resolution"].text()), (200, "tolerated"));
    for (name, body) in
        [("acknowledge", nothing()), ("resolve", tolerated), ("quarantine", nothing())]
    {
        let refused = verb(&world, &id, name, body).await;
        assert_eq!(refusal(&refused), (409, "record_is_final".to_owned()), "{name}");
    }
    assert_eq!(
        world.events("svc.recovery.").await,
        ["svc.recovery.started", "svc.recovery.completed"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_is_of_the_action_and_actor_and_ends_with_the_drift() {
    let world = World::start().await;
    let id = reported(&world, only("actor_entity_id", AGENT)).await;
    let (status, moved) = verb(&world, &id, "quarantine", only("reason", "looks wrong")).await;
    assert_eq!((status, moved["drift_event"]["status"].text()), (200, "quarantined"), "{moved:#}");
    let quarantine =
        format!("/api/v1/quarantines/{}", moved["drift_event"]["quarantine_id"].as_str().unwrap());
    let (_, made) = world.owner.get(&quarantine).await;
    let made = &made["quarantine"];
    assert_eq!(
        (
            made["subject_id"].text(),
            made["action"].text(),
            made["reason"].text(),
            made["state"].text()
        ),
        (AGENT, ACTION, "looks wrong", "active")
    );
    let again = verb(&world, &id, "quarantine", nothing()).await;
    assert_eq!(refusal(&again), (409, "transition_not_allowed".to_owned()));
    // An escalated event keeps its quarantine. Deleting the event releases the quarantine.
    let (_, escalated) = verb(&world, &id, "resolve", only("resolution", "escalated")).await;
    assert_eq!(escalated["drift_event"]["recommended_runtime_effect"], "require_human_review");
    assert_eq!(world.owner.get(&quarantine).await.1["quarantine"]["state"], "active");
    let (status, _) = world.owner.delete_drift_event(&id).await;
    assert_eq!(status, 200);
    assert_eq!(world.owner.get(&quarantine).await.1["quarantine"]["state"], "released");
    let (_, gone) =
        world.owner.get(&format!("/api/v1/stable-drift-events/{id}?deleted=true")).await;
    let gone = &gone["drift_event"];
    assert_eq!((gone["status"].text(), gone["resolution"].text()), ("resolved", "tolerated"));
    assert!(gone["deleted_at"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recoupling_runs_the_check_again() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let check = world.new_check(nothing()).await;
    world.run(&check).await;
    let event = world.drift(&check).await[0]["id"].as_str().unwrap().to_owned();
    let recouple = only("resolution", "recoupled");
    let still = verb(&world, &event, "resolve", recouple.clone()).await;
    assert_eq!(refusal(&still), (409, "still_decoupled".to_owned()));
    let missing = format!("the anchor `{anchor}` is revalidation_required, source_of_truth_stale");
    assert_eq!(still.1["details"], json!([{"field": "resolution", "problem": missing}]));
    let (_, read) = world.owner.get_coupling_check(&check).await;
    assert_eq!(read["coupling_check"]["history"].as_array().unwrap().len(), 1);
    world.new_snapshot(&anchor, 5, "sha256:a").await;
    let (status, resolved) = verb(&world, &event, "resolve", recouple).await;
    assert_eq!(
        (status, resolved["drift_event"]["status"].text()),
        (200, "resolved"),
        "{resolved:#}"
    );
    let (_, read) = world.owner.get_coupling_check(&check).await;
    assert_eq!(read["coupling_check"]["coupling_result"], "coupled");
    assert_eq!(world.events("svc.rec").await, ["svc.recovery.completed"]);
    assert_eq!(
        world.events("svc.reality.").await,
        ["svc.reality.drift_detected", "svc.reality.recoupled"]
    );
}

/// Once a finding is tolerated, the same anchor, drift type and content only give a warning. A
/// finding with other content is not tolerated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_tolerated_is_a_warning_from_then_on() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    world.new_snapshot(&anchor, 9, "sha256:b").await;
    let assumed = json!([{"anchor_id": anchor, "expected_content_hash": "sha256:a"}]);
    let check = world.new_check(only("assumptions", &assumed)).await;
    assert_eq!(world.run(&check).await["coupling_result"], "decoupling_detected");
    let event = world.drift(&check).await[0]["id"].as_str().unwrap().to_owned();
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    assert_eq!(verb(&world, &event, "resolve", tolerated).await.0, 200);
    assert_eq!(world.run(&check).await["coupling_result"], "coupled_with_warnings");
    world.new_snapshot(&anchor, 5, "sha256:c").await;
    assert_eq!(world.run(&check).await["coupling_result"], "decoupling_detected");
    assert_eq!(world.drift(&check).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_ends_the_delegation_of_the_check() {
    let world = World::start().await;
    let (_, held) = world.owner.list_delegations(&format!("tenant_id={TENANT}")).await;
    let delegation = held["delegations"][0]["id"].as_str().unwrap().to_owned();
    let check = world.new_check(only("purpose_grant_id", &delegation)).await;
    let id = reported(&world, only("check_id", &check)).await;
    let (status, resolved) = verb(&world, &id, "resolve", only("resolution", "revoked")).await;
    assert_eq!(
        (status, resolved["drift_event"]["status"].text()),
        (200, "resolved"),
        "{resolved:#}"
    );
    let (_, gone) = world.owner.get_delegation(&delegation).await;
    assert_eq!(gone["delegation"]["state"], "revoked");
    assert_eq!(world.events("svc.recovery.").await, ["svc.recovery.failed"]);
}

/// If the check names a renewed delegation, `revoked` ends the newest delegation of its line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_ends_the_delegation_in_force_of_a_renewed_line() {
    for named in 0..2 {
        let world = World::start().await;
        let (_, held) = world.owner.list_delegations(&format!("tenant_id={TENANT}")).await;
        let mut line = vec![held["delegations"][0]["id"].as_str().unwrap().to_owned()];
        for turn in 0..2 {
            let renewed = world
                .owner
                .renew_delegation(&line[turn], only("expires_at", Value::Null))
                .await
                .assert_status(200);
            line.push(renewed["delegation"]["id"].as_str().unwrap().to_owned());
        }
        let check = world.new_check(only("purpose_grant_id", &line[named])).await;
        let id = reported(&world, only("check_id", &check)).await;
        let revoked = only("resolution", "revoked");
        verb(&world, &id, "resolve", revoked).await.assert_status(200);
        let (_, newest) = world.owner.get_delegation(&line[2]).await;
        assert_eq!(newest["delegation"]["state"], "revoked", "{newest:#}");
        assert_eq!(newest["delegation"]["renewed_by"], json!(null), "{newest:#}");
    }
}

/// A decision's id can replace its action, subject and delegation in a report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_stands_for_its_action_and_subject() {
    let world = World::start().await;
    let key = world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await);
    let asked = crate::support::asking(10.0, "DE");
    let (_, decided) = key.evaluate(asked).await;
    let decision = decided["decision_id"].as_str().unwrap();
    let id = reported(&world, json!({"action_id": decision, "severity": "critical"})).await;
    let (_, event) = world.owner.get_drift_event(&id).await;
    let event = &event["drift_event"];
    assert_eq!((event["action"].text(), event["subject_id"].text()), ("payment.execute", AGENT));
    verb(&world, &id, "quarantine", nothing()).await.assert_status(200);
    let (_, refused) = key.evaluate(crate::support::asking(10.0, "DE")).await;
    assert_eq!(refused["reason_code"], "capability_quarantined", "{refused:#}");
    assert_eq!(verb(&world, &id, "resolve", only("resolution", "revoked")).await.0, 200);
    let (_, refused) = key.evaluate(crate::support::asking(10.0, "DE")).await;
    assert_ne!(refused["decision"], "allow", "{refused:#}");
}
