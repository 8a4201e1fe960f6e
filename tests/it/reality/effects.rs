//! Effects of reality data on decisions, from anchors, snapshots, overrides and drift.

use serde_json::{Value, json};

use super::{AGENT, TENANT, World, refusal};
use crate::support::{
    Answered, Client, Members, Plain, asking, new_api_key, new_delegation, new_principal, nothing,
    only,
};

/// Returns the decision on a small payment.
async fn decided(key: &Client) -> Value {
    key.evaluate_decision(asking(10.0, "DE")).await.1
}

async fn runtime(world: &World) -> Client {
    world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_without_a_snapshot_holds_until_one_comes_or_a_person_overrides() {
    let world = World::start().await;
    let key = runtime(&world).await;
    assert_eq!(decided(&key).await["reason_code"], "permission_granted");
    let anchor = world.new_anchor(only("grounds_actions", ["payment.*"])).await;
    let held = decided(&key).await;
    assert_eq!(held["reason_code"], "reality_revalidation_required", "{held:#}");
    let check = json!({"action_id": "payment.execute", "actor_entity_id": AGENT});
    let check = world.new_check(check).await;
    world.run(&check).await;
    // The owner who created this API key may not override for it. Another owner overrides.
    world
        .decide(&world.another_owner("second@example.org"), &check, "override")
        .await
        .assert_status(200);
    let permitted = decided(&key).await;
    assert_eq!(permitted["reason_code"], "permission_granted", "{permitted:#}");
    assert!(permitted["obligations"].to_string().contains("reality.overridden"), "{permitted:#}");
    // A new run ends the override. A fresh snapshot also ends the drift about age.
    world.run(&check).await;
    assert_eq!(decided(&key).await["reason_code"], "reality_revalidation_required");
    world.new_snapshot(&anchor, 1, "sha256:a").await;
    let coupled = decided(&key).await;
    assert_eq!(coupled["reason_code"], "permission_granted", "{coupled:#}");
    assert!(!coupled["obligations"].to_string().contains("reality."), "{coupled:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_applies_until_it_is_resolved_and_a_report_on_a_check_does_not() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let check = json!({"action_id": "payment.execute", "coupling_result": "deny_required",
                       "runtime_effect": "deny"});
    let check = world.new_check(check).await;
    assert_eq!(decided(&key).await["reason_code"], "permission_granted");
    let body = json!({"tenant_id": TENANT, "check_id": check, "action_id": "payment.execute",
                      "drift_type": "stable_drift", "severity": "critical"});
    let event = world.owner.create_drift_event(body).await.assert_made("drift_event");
    assert_eq!(decided(&key).await["reason_code"], "reality_decoupled");
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    assert_eq!(world.owner.resolve_drift_event(&event, tolerated).await.0, 200);
    assert_eq!(decided(&key).await["reason_code"], "permission_granted");
}

/// An override covers only the snapshot that was reviewed, even for drift by an assumption.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_snapshot_ends_an_override_for_good() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let anchor = world.new_anchor(only("grounds_actions", ["payment.*"])).await;
    world.new_snapshot(&anchor, 30, "sha256:reviewed").await;
    let assumed = json!([{"anchor_id": anchor, "expected_content_hash": "sha256:assumed"}]);
    let body =
        json!({"action_id": "payment.execute", "actor_entity_id": AGENT, "assumptions": assumed});
    let check = world.new_check(body).await;
    assert_eq!(world.run(&check).await["coupling_result"], "decoupling_detected");
    let second = world.another_owner("second@example.org");
    assert_eq!(world.decide(&second, &check, "override").await.0, 200);
    assert_eq!(decided(&key).await["reason_code"], "permission_granted");
    let newer = world.new_snapshot(&anchor, 20, "sha256:unseen").await;
    assert_eq!(decided(&key).await["reason_code"], "reality_review_required");
    let (_, read) = world.owner.get_coupling_check(&check).await;
    assert_eq!(read["coupling_check"]["override"]["state"], "ended");
    // Deleting the snapshot makes the earlier one the
    // newest again, but does not restore the override.
    assert_eq!(world.owner.delete_reality_snapshot(&newer).await.0, 200);
    assert_eq!(decided(&key).await["reason_code"], "reality_review_required");
    // The run's finding applies again and is overridden again. Then a person escalates its event.
    assert_eq!(world.decide(&second, &check, "override").await.0, 200);
    assert_eq!(decided(&key).await["reason_code"], "permission_granted");
    let event = world.drift(&check).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        world.owner.resolve_drift_event(&event, only("resolution", "escalated")).await.0,
        200
    );
    assert_eq!(decided(&key).await["reason_code"], "reality_review_required");
}

/// A run is too old for an override if snapshots have changed since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_is_of_the_present_snapshots() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let check = world.new_check(only("actor_entity_id", AGENT)).await;
    world.run(&check).await;
    world.new_snapshot(&anchor, 90, "sha256:a").await;
    let late = world.decide(&world.owner, &check, "override").await;
    assert_eq!(refusal(&late), (409, "transition_not_allowed".to_owned()), "{:#}", late.1);
    world.run(&check).await;
    assert_eq!(world.decide(&world.owner, &check, "override").await.0, 200);
}

/// A drift event about an assumed age ends with an observation within that age. A newer observation
/// that is still too old does not end it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_by_an_assumed_age_ends_by_an_observation_that_is_young_enough() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let body = json!({"grounds_actions": ["payment.*"], "freshness_contract": null});
    let anchor = world.new_anchor(body).await;
    world.new_snapshot(&anchor, 7200, "sha256:a").await;
    let assumed = json!([{"anchor_id": anchor, "max_age_seconds": 600}]);
    let body = json!({"action_id": "payment.execute", "assumptions": assumed});
    let check = world.new_check(body).await;
    world.run(&check).await;
    assert_eq!(decided(&key).await["reason_code"], "reality_revalidation_required");
    world.new_snapshot(&anchor, 7000, "sha256:a").await;
    assert_eq!(decided(&key).await["reason_code"], "reality_revalidation_required");
    world.new_snapshot(&anchor, 1, "sha256:a").await;
    assert_eq!(decided(&key).await["reason_code"], "permission_granted");
}

/// An approval covers only the drift that existed when the approval was given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_approval_reviews_no_drift_that_was_escalated_or_dated_back() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let drift = |more: Value| {
        super::with(
            json!({"tenant_id": TENANT, "action_id": "payment.execute",
                           "drift_type": "stable_drift"}),
            more,
        )
    };
    let check = world.new_check(only("action_id", "payment.execute")).await;
    let warning = drift(json!({"check_id": check, "severity": "low"}));
    let event = world.owner.create_drift_event(warning).await.assert_made("drift_event");
    let hold = async |amount: f64| {
        let held = key.evaluate_decision(asking(amount, "DE")).await.1;
        held["approval_id"].as_str().unwrap_or_else(|| panic!("{held:#}")).to_owned()
    };
    let cited = async |amount: f64, approval: &str| {
        let body = super::with(asking(amount, "DE"), only("approval_id", approval));
        key.evaluate_decision(body).await.1["decision"].clone()
    };
    let approve = async |id: &str| {
        let approver = world.app.person(TENANT, "approver", "another@example.org");
        approver.approve_approval(id).await.assert_status(200);
    };
    let [first, second, third] = [hold(25_000.0).await, hold(26_000.0).await, hold(27_000.0).await];
    for approval in [&first, &second, &third] {
        approve(approval).await;
    }
    assert_eq!(cited(27_000.0, &third).await, "allow_with_constraints");
    assert_eq!(
        world.owner.resolve_drift_event(&event, only("resolution", "escalated")).await.0,
        200
    );
    assert_eq!(cited(25_000.0, &first).await, "require_approval");
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    assert_eq!(world.owner.resolve_drift_event(&event, tolerated).await.0, 200);
    let dated = drift(json!({"check_id": check, "severity": "high",
                             "detected_at": "2020-01-01T00:00:00Z"}));
    world.owner.create_drift_event(dated).await.assert_made("drift_event");
    assert_eq!(cited(26_000.0, &second).await, "require_approval");
}

/// Drift from an assumption shows the anchor and the path of the mismatch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_request_shows_the_anchors_and_paths_of_drift() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let anchor = world.new_anchor(only("display_name", "Reference rates")).await;
    world.new_snapshot(&anchor, 5, "sha256:a").await;
    let assumed = json!([{"anchor_id": anchor, "path": "/rates/USD", "equals": 1.1512}]);
    let check =
        world.new_check(json!({"action_id": "payment.execute", "assumptions": assumed})).await;
    world.run(&check).await;
    let held = decided(&key).await;
    assert_eq!(held["reason_code"], "reality_review_required", "{held:#}");
    let expected = json!([{"id": anchor, "name": "Reference rates",
                           "mismatched_paths": ["/rates/USD"]}]);
    let approver = world.app.person(TENANT, "approver", "another@example.org");
    let (_, listed) = approver.list_approvals("state=pending").await;
    let id = listed["approvals"][0]["id"].as_str().unwrap();
    let (_, shown) = approver.get_approval(id).await;
    for approval in [&listed["approvals"][0], &shown["approval"]] {
        let reality = approval["reality"].as_array().unwrap();
        assert_eq!(reality.len(), 1, "{approval:#}");
        assert_eq!((reality[0]["source"].text(), &reality[0]["anchors"]), ("drift", &expected));
    }
}

/// Approvers see the drift that holds the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_request_shows_what_of_reality_holds_it() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let grounds = json!({"grounds_actions": ["payment.*"], "display_name": "Reference rates",
                         "freshness_contract": {"max_staleness_seconds": 60,
                                                "stale_runtime_effect": "require_human_review"}});
    let anchor = world.new_anchor(grounds).await;
    world.new_snapshot(&anchor, 3600, "sha256:a").await;
    let drift = json!({"tenant_id": TENANT, "action_id": "payment.execute", "severity": "high",
                       "drift_type": "stable_drift",
                       "check_id": world.new_check(nothing()).await});
    let drift = world.owner.create_drift_event(drift).await.assert_made("drift_event");
    let held = key.evaluate_decision(asking(10.0, "DE").with("explain", true)).await.1;
    assert_eq!(held["reason_code"], "reality_review_required", "{held:#}");
    let explained = held.to_string();
    for found in ["require_human_review: verified_but_stale since ", "stable_drift since "] {
        assert!(explained.contains(found), "{held:#}");
    }
    let approver = world.app.person(TENANT, "approver", "another@example.org");
    let (_, listed) = approver.list_approvals("state=pending").await;
    let reality = listed["approvals"][0]["reality"].as_array().unwrap();
    assert_eq!(reality.len(), 2, "{listed:#}");
    let of = |shown: &Value| {
        let [source, id, drift_type, effect, name] =
            ["source", "id", "drift_type", "effect", "name"].map(|member| shown[member].clone());
        json!([source, id, drift_type, effect, name])
    };
    let review = "require_human_review";
    assert_eq!(
        of(&reality[0]),
        json!(["anchor", anchor, "verified_but_stale", review, "Reference rates"])
    );
    assert_eq!(of(&reality[1]), json!(["drift", drift, "stable_drift", review, null]));
    assert!(reality.iter().all(|shown| shown["since"].is_string()), "{reality:#?}");
    // Read by its id, the approval shows the findings that hold the request now.
    let tolerated = json!({"resolution": "tolerated", "rationale": "known"});
    assert_eq!(world.owner.resolve_drift_event(&drift, tolerated).await.0, 200);
    let id = listed["approvals"][0]["id"].as_str().unwrap();
    let (_, shown) = approver.get_approval(id).await;
    let present = shown["approval"]["reality"].as_array().unwrap();
    assert_eq!(present.len(), 1, "{shown:#}");
    assert_eq!(
        (present[0]["id"].text(), present[0]["name"].text()),
        (anchor.as_str(), "Reference rates")
    );
}

/// An override does not apply to the requests of its author. It ends for an agent once its author
/// delegates to that agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_override_is_judged_at_each_decision() {
    let world = World::start().await;
    let key = runtime(&world).await;
    world.new_anchor(only("grounds_actions", ["payment.*"])).await;
    let check = world.new_check(only("action_id", "payment.execute")).await;
    world.run(&check).await;
    let maker = world.another_owner("third@example.org");
    world.decide(&maker, &check, "override").await.assert_status(200);
    let reason = async |key: &Client| decided(key).await["reason_code"].clone();
    assert_eq!(reason(&key).await, "permission_granted");

    let (_, made) = maker.create_api_key(new_api_key("later", &["runtime:write"])).await;
    let own = world.app.client(made["secret"].as_str().unwrap());
    assert_eq!(reason(&own).await, "reality_revalidation_required");
    assert_eq!(reason(&key).await, "permission_granted");

    let principal = new_principal("human", "Third").with("email", "third@example.org");
    let principal = world.owner.create_principal(principal).await.assert_made("principal");
    assert_eq!(reason(&key).await, "permission_granted");
    let given = new_delegation(&principal, AGENT, &["payment.*"]);
    let (_, held) = world.owner.list_delegations(&format!("delegate_id={AGENT}")).await;
    let used = held["delegations"][0]["id"].clone();
    world.owner.create_delegation(given).await.assert_made("delegation");
    assert_eq!(reason(&key).await, "reality_revalidation_required");
    // Citing a delegation from another person does not restore the override.
    let (_, answer) = key.evaluate_decision(asking(10.0, "DE").with("delegation_id", used)).await;
    assert_eq!(answer["reason_code"], "reality_revalidation_required", "{answer:#}");
}

/// An approval covers findings that the approver was shown. Later ones must be listed in
/// `reviewed`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_names_what_began_after_the_request_was_opened() {
    let world = World::start().await;
    let key = runtime(&world).await;
    let held = key.evaluate_decision(asking(25_000.0, "DE")).await.1;
    let id = held["approval_id"].as_str().unwrap_or_else(|| panic!("{held:#}"));
    let drift = json!({"tenant_id": TENANT, "action_id": "payment.execute", "severity": "high",
                       "drift_type": "stable_drift",
                       "check_id": world.new_check(nothing()).await});
    let drift = world.owner.create_drift_event(drift).await.assert_made("drift_event");
    let approver = world.app.person(TENANT, "approver", "another@example.org");
    // An entry with a time matches only a finding that began then. An entry that only begins with
    // the finding's id does not match.
    let of_another_time = json!({"reviewed": [format!("{drift}@2026-01-01T00:00:00Z")]});
    let longer = json!({"reviewed": [format!("{drift}@"), format!("{drift}x")]});
    for unseen in [
        nothing(),
        json!({"reviewed": []}),
        only("reviewed", ["svc:other"]),
        of_another_time,
        longer,
    ] {
        let refused = approver.act_on_approval(id, "approve", unseen).await;
        assert_eq!(refusal(&refused), (409, "reality_not_reviewed".to_owned()), "{:#}", refused.1);
        let problem = refused.1["details"][0].to_string();
        assert!(problem.contains("reviewed") && problem.contains(&drift), "{:#}", refused.1);
    }
    let (_, read) = approver.get_approval(id).await;
    assert_eq!(
        (read["approval"]["given"].number(), read["approval"]["state"].text()),
        (0, "pending")
    );
    let shown = &read["approval"]["reality"][0];
    assert_eq!(shown["id"], drift);
    let exactly = format!("{drift}@{}", shown["since"].as_str().unwrap());
    let (status, approved) =
        approver.act_on_approval(id, "approve", json!({"reviewed": [exactly]})).await;
    assert_eq!((status, approved["approval"]["state"].text()), (200, "approved"), "{approved:#}");
    let body = super::with(asking(25_000.0, "DE"), only("approval_id", id));
    let permitted = key.evaluate_decision(body).await.1;
    assert_eq!(permitted["decision"], "allow_with_constraints", "{permitted:#}");
}
