//! Drift events: reports, operations, resolutions, and their effects on other records.

use serde_json::{Value, json};

use super::{ACTION, AGENT, TENANT, World, fault, refusal};

/// Reports a drift event and returns its path.
async fn reported(world: &World, more: Value) -> String {
    let check = world.new_check(json!({})).await;
    let body = json!({"tenant_id": TENANT, "check_id": check, "action_id": ACTION,
                      "drift_type": "stable_drift", "severity": "low"});
    let id = world.made("stable-drift-events", "drift_event", super::with(body, more)).await;
    format!("/api/v1/stable-drift-events/{id}")
}

async fn verb(world: &World, path: &str, verb: &str, body: Value) -> (u16, Value) {
    world.owner.post(&format!("{path}/{verb}"), body).await
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
        let path =
            reported(&world, json!({"severity": severity, "drift_type": "cross_ledger_fx"})).await;
        let event = world.owner.get(&path).await.1["drift_event"].clone();
        assert_eq!(event["recommended_runtime_effect"], effect);
        assert_eq!(
            (&event["status"], &event["result_source"]),
            (&json!("open"), &json!("reported"))
        );
        assert!(event["detected_at"].is_string());
    }
    let path = reported(&world, json!({"recommended_runtime_effect": "deny"})).await;
    let (_, event) = world.owner.get(&path).await;
    assert_eq!(event["drift_event"]["recommended_runtime_effect"], "deny");
    let check = world.new_check(json!({})).await;
    let body = json!({"tenant_id": TENANT, "check_id": check, "action_id": ACTION,
                      "drift_type": "stable_drift", "severity": "low"});
    for (more, field) in [
        (json!({"drift_type": "crossed"}), "drift_type"),
        (json!({"drift_type": "cross_"}), "drift_type"),
        (json!({"check_id": "svc:coupling_check:none"}), "check_id"),
        (json!({"detected_at": super::ago(-60)}), "detected_at"),
        (json!({"anchors_implicated": ["none"]}), "anchors_implicated[0]"),
    ] {
        let answer =
            world.owner.post("/api/v1/stable-drift-events", super::with(body.clone(), more)).await;
        assert_eq!(fault(&answer), field);
    }
    // Admins and auditors are notified.
    let auditor = world.app.client(&world.app.member_token(TENANT, "auditor"));
    let (_, told) = auditor.get("/api/v1/app/notifications").await;
    assert!(told.to_string().contains("reality.drift_detected"), "{told:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_moves_a_resolved_event() {
    let world = World::start().await;
    let path = reported(&world, json!({})).await;
    let (status, seen) = verb(&world, &path, "acknowledge", json!({"note": "seen"})).await;
    assert_eq!((status, &seen["drift_event"]["status"]), (200, &json!("acknowledged")));
    assert_eq!(
        fault(&verb(&world, &path, "resolve", json!({"resolution": "tolerated"})).await),
        "rationale"
    );
    assert_eq!(
        fault(&verb(&world, &path, "resolve", json!({"resolution": "ignored"})).await),
        "resolution"
    );
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    let (status, resolved) = verb(&world, &path, "resolve", tolerated.clone()).await;
    assert_eq!((status, &resolved["drift_event"]["resolution"]), (200, &json!("tolerated")));
    for (name, body) in
        [("acknowledge", json!({})), ("resolve", tolerated), ("quarantine", json!({}))]
    {
        let refused = verb(&world, &path, name, body).await;
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
    let path = reported(&world, json!({"actor_entity_id": AGENT})).await;
    let (status, moved) = verb(&world, &path, "quarantine", json!({"reason": "looks wrong"})).await;
    assert_eq!(
        (status, &moved["drift_event"]["status"]),
        (200, &json!("quarantined")),
        "{moved:#}"
    );
    let quarantine =
        format!("/api/v1/quarantines/{}", moved["drift_event"]["quarantine_id"].as_str().unwrap());
    let (_, made) = world.owner.get(&quarantine).await;
    let made = &made["quarantine"];
    assert_eq!(
        (&made["subject_id"], &made["action"], &made["reason"], &made["state"]),
        (&json!(AGENT), &json!(ACTION), &json!("looks wrong"), &json!("active"))
    );
    let again = verb(&world, &path, "quarantine", json!({})).await;
    assert_eq!(refusal(&again), (409, "transition_not_allowed".to_owned()));
    // An escalated event keeps its quarantine. Deleting the event releases the quarantine.
    let (_, escalated) = verb(&world, &path, "resolve", json!({"resolution": "escalated"})).await;
    assert_eq!(escalated["drift_event"]["recommended_runtime_effect"], "require_human_review");
    assert_eq!(world.owner.get(&quarantine).await.1["quarantine"]["state"], "active");
    let (status, _) = world.owner.call("DELETE", &path, None, &[]).await;
    assert_eq!(status, 200);
    assert_eq!(world.owner.get(&quarantine).await.1["quarantine"]["state"], "released");
    let (_, gone) = world.owner.get(&format!("{path}?deleted=true")).await;
    let gone = &gone["drift_event"];
    assert_eq!((&gone["status"], &gone["resolution"]), (&json!("resolved"), &json!("tolerated")));
    assert!(gone["deleted_at"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recoupling_runs_the_check_again() {
    let world = World::start().await;
    let anchor = world.new_anchor(json!({})).await;
    let check = world.new_check(json!({})).await;
    world.run(&check).await;
    let event = world.drift(&check).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/stable-drift-events/{event}");
    let recouple = json!({"resolution": "recoupled"});
    let still = verb(&world, &path, "resolve", recouple.clone()).await;
    assert_eq!(refusal(&still), (409, "still_decoupled".to_owned()));
    let missing = format!("the anchor `{anchor}` is revalidation_required, source_of_truth_stale");
    assert_eq!(still.1["details"], json!([{"field": "resolution", "problem": missing}]));
    let (_, read) = world.owner.get(&format!("/api/v1/reality-coupling-checks/{check}")).await;
    assert_eq!(read["coupling_check"]["history"].as_array().unwrap().len(), 1);
    world.new_snapshot(&anchor, 5, "sha256:a").await;
    let (status, resolved) = verb(&world, &path, "resolve", recouple).await;
    assert_eq!(
        (status, &resolved["drift_event"]["status"]),
        (200, &json!("resolved")),
        "{resolved:#}"
    );
    let (_, read) = world.owner.get(&format!("/api/v1/reality-coupling-checks/{check}")).await;
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
    let anchor = world.new_anchor(json!({})).await;
    world.new_snapshot(&anchor, 9, "sha256:b").await;
    let assumed = json!([{"anchor_id": anchor, "expected_content_hash": "sha256:a"}]);
    let check = world.new_check(json!({"assumptions": assumed})).await;
    assert_eq!(world.run(&check).await["coupling_result"], "decoupling_detected");
    let event = world.drift(&check).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/stable-drift-events/{event}");
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    assert_eq!(verb(&world, &path, "resolve", tolerated).await.0, 200);
    assert_eq!(world.run(&check).await["coupling_result"], "coupled_with_warnings");
    world.new_snapshot(&anchor, 5, "sha256:c").await;
    assert_eq!(world.run(&check).await["coupling_result"], "decoupling_detected");
    assert_eq!(world.drift(&check).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_ends_the_delegation_of_the_check() {
    let world = World::start().await;
    let (_, held) = world.owner.get(&format!("/api/v1/delegations?tenant_id={TENANT}")).await;
    let delegation = held["delegations"][0]["id"].as_str().unwrap().to_owned();
    let check = world.new_check(json!({"purpose_grant_id": delegation})).await;
    let path = reported(&world, json!({"check_id": check})).await;
    let (status, resolved) = verb(&world, &path, "resolve", json!({"resolution": "revoked"})).await;
    assert_eq!(
        (status, &resolved["drift_event"]["status"]),
        (200, &json!("resolved")),
        "{resolved:#}"
    );
    let (_, gone) = world.owner.get(&format!("/api/v1/delegations/{delegation}")).await;
    assert_eq!(gone["delegation"]["state"], "revoked");
    assert_eq!(world.events("svc.recovery.").await, ["svc.recovery.failed"]);
}

/// If the check names a renewed delegation, `revoked` ends the newest delegation of its line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_ends_the_delegation_in_force_of_a_renewed_line() {
    for named in 0..2 {
        let world = World::start().await;
        let (_, held) = world.owner.get(&format!("/api/v1/delegations?tenant_id={TENANT}")).await;
        let mut line = vec![held["delegations"][0]["id"].as_str().unwrap().to_owned()];
        for turn in 0..2 {
            let renew = format!("/api/v1/delegations/{}/renew", line[turn]);
            let (status, renewed) = world.owner.post(&renew, json!({"expires_at": null})).await;
            assert_eq!(status, 200, "{renewed:#}");
            line.push(renewed["delegation"]["id"].as_str().unwrap().to_owned());
        }
        let check = world.new_check(json!({"purpose_grant_id": line[named]})).await;
        let path = reported(&world, json!({"check_id": check})).await;
        let revoked = json!({"resolution": "revoked"});
        let (status, resolved) = verb(&world, &path, "resolve", revoked).await;
        assert_eq!(status, 200, "{resolved:#}");
        let (_, newest) = world.owner.get(&format!("/api/v1/delegations/{}", line[2])).await;
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
    let (_, decided) = key.post("/api/v1/runtime/evaluate", asked).await;
    let decision = decided["decision_id"].as_str().unwrap();
    let path = reported(&world, json!({"action_id": decision, "severity": "critical"})).await;
    let (_, event) = world.owner.get(&path).await;
    let event = &event["drift_event"];
    assert_eq!(
        (&event["action"], &event["subject_id"]),
        (&json!("payment.execute"), &json!(AGENT))
    );
    let (status, moved) = verb(&world, &path, "quarantine", json!({})).await;
    assert_eq!(status, 200, "{moved:#}");
    let (_, refused) =
        key.post("/api/v1/runtime/evaluate", crate::support::asking(10.0, "DE")).await;
    assert_eq!(refused["reason_code"], "capability_quarantined", "{refused:#}");
    assert_eq!(verb(&world, &path, "resolve", json!({"resolution": "revoked"})).await.0, 200);
    let (_, refused) =
        key.post("/api/v1/runtime/evaluate", crate::support::asking(10.0, "DE")).await;
    assert_ne!(refused["decision"], "allow", "{refused:#}");
}
