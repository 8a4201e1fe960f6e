//! Checks: a report has no effects. A run judges the current anchors and opens drift events.

use serde_json::{Map, Value, json};

use super::{ACTION, AGENT, TENANT, World, fault};
use crate::support::{Answered, Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_stored_as_it_was_given() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let body = json!({
        "tenant_id": TENANT, "action_id": ACTION, "coupling_result": "deny_required",
        "runtime_effect": "deny", "actor_entity_id": AGENT, "anchors_consulted": [anchor],
        "assumptions": [{"anchor_id": anchor, "path": "/a", "equals": 1, "why": "policy 7"}],
        "severity": "critical", "reason_codes": ["because"], "evidence_refs": ["invoice:1"],
    });
    let made = world.owner.create_coupling_check(body.clone()).await.assert_status(201);
    let made = &made["coupling_check"];
    for (member, value) in body.as_object().unwrap() {
        assert_eq!(&made[member], value, "{member}");
    }
    assert_eq!((made["result_source"].text(), made["action"].text()), ("reported", ACTION));
    assert!(world.drift(made["id"].as_str().unwrap()).await.is_empty());
    for (more, field) in [
        (only("action_id", "Payment"), "action_id"),
        (only("action_id", format!("svc:decision:{}", "0".repeat(64))), "action_id"),
        (only("anchors_consulted", ["svc:ent:acme:reality_anchor:none"]), "anchors_consulted[0]"),
        (json!({"assumptions": [{"path": "/a"}]}), "assumptions[0].anchor_id"),
        (json!({"assumptions": [{"anchor_id": anchor, "equals": 1}]}), "assumptions[0].equals"),
        (
            json!({"assumptions": [{"anchor_id": anchor, "max_age_seconds": -1}]}),
            "assumptions[0].max_age_seconds",
        ),
        (only("actor_entity_id", "svc:agent:acme:none"), "actor_entity_id"),
        (only("purpose_grant_id", "svc:del:acme:none"), "purpose_grant_id"),
    ] {
        let answer = world.owner.create_coupling_check(super::with(body.clone(), more)).await;
        assert_eq!(fault(&answer), field);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_consults_nothing_says_so() {
    let world = World::start().await;
    let check = world.new_check(nothing()).await;
    let ran = world.run(&check).await;
    assert_eq!(ran["coupling_result"], "coupled_with_warnings");
    assert_eq!(ran["runtime_effect"], "continue_with_warning");
    assert_eq!(ran["reason_codes"].texts(), ["no_anchor_consulted"]);
    assert_eq!((ran["result_source"].text(), &ran["severity"]), ("engine", &Value::Null));
}

/// Each line has the anchor's fields, the age and hash of its snapshots, and the assumption,
/// followed by the expected result, effect, drift type and severity.
const FINDINGS: &str = r#"
{} | 5 a | {} | coupled | continue | |
{} | | {} | revalidation_required | require_revalidation | source_of_truth_stale | medium
{"missing_runtime_effect": "deny"} | | {} | deny_required | deny | source_of_truth_stale | critical
{} | 60 a | {} | revalidation_required | require_revalidation | verified_but_stale | medium
{"anchor_type": "vendor_context"} | 60 a | {} | revalidation_required | require_revalidation | operational_context_stale | medium
{"stale_runtime_effect": "continue"} | 60 a | {} | coupled_with_warnings | continue | |
{"stale_runtime_effect": "require_human_review"} | 60 a | {} | decoupling_detected | require_human_review | verified_but_stale | high
{"expected_refresh_seconds": 3} | 5 a | {} | coupled_with_warnings | continue_with_warning | |
{"status": "draft"} | 5 a | {} | unknown | require_human_review | stable_drift | high
{} | 5 a | {"expected_content_hash": "sha256:b"} | decoupling_detected | require_human_review | system_of_record_conflict | high
{"anchor_type": "policy_context"} | 5 a | {"expected_content_hash": "sha256:b"} | decoupling_detected | require_human_review | policy_context_shifted | high
{"anchor_type": "environment_state"} | 5 a | {"expected_content_hash": "sha256:b"} | decoupling_detected | require_human_review | environment_state_mismatch | high
{"anchor_type": "risk_context"} | 5 a | {"expected_content_hash": "sha256:b"} | decoupling_detected | require_human_review | stable_drift | high
{} | 5 a | {"path": "/balance"} | decoupling_detected | require_human_review | semantic_anchor_drift | high
{} | 5 a | {"max_age_seconds": 2} | revalidation_required | require_revalidation | assumption_expired | medium
{} | 5 a b | {} | quarantine_required | quarantine | cross_system_consensus_drift | critical
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_finding_has_its_result_effect_and_kind_of_drift() {
    let world = World::start().await;
    for line in FINDINGS.trim().lines() {
        let [stored, snapshots, assumed, result, effect, drift_type, severity] =
            line.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let anchor = world.anchor_of(serde_json::from_str(stored).unwrap()).await;
        let mut snapshots = snapshots.split_whitespace();
        if let Some(age) = snapshots.next() {
            let time = super::ago(age.parse().unwrap());
            for hash in snapshots {
                let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": time,
                                  "content_hash": format!("sha256:{hash}")});
                world.owner.create_reality_snapshot(body).await.assert_made("reality_snapshot");
            }
        }
        let mut more = json!({"anchors_consulted": [anchor]});
        if assumed != "{}" {
            let assumed = serde_json::from_str(assumed).unwrap();
            more["assumptions"] = json!([super::with(assumed, only("anchor_id", &anchor))]);
        }
        let path = more["assumptions"][0]["path"].clone();
        let check = world.new_check(more).await;
        let ran = world.run(&check).await;
        let mismatched =
            if drift_type == "semantic_anchor_drift" { json!([path]) } else { json!([]) };
        assert_eq!(ran["findings"][0]["mismatched_paths"], mismatched, "{line}: {ran:#}");
        assert_eq!(ran["coupling_result"], result, "{line}: {ran:#}");
        assert_eq!(ran["runtime_effect"], effect, "{line}: {ran:#}");
        assert_eq!(ran["severity"].as_str().unwrap_or(""), severity, "{line}: {ran:#}");
        let drift = world.drift(&check).await;
        assert_eq!(drift.len(), usize::from(!severity.is_empty()), "{line}");
        for event in &drift {
            assert_eq!(event["drift_type"], drift_type, "{line}");
            assert_eq!(event["severity"], severity, "{line}");
            assert_eq!(event["recommended_runtime_effect"], effect, "{line}");
            assert_eq!(event["anchors_implicated"], json!([anchor]), "{line}");
            assert_eq!(event["status"], "open", "{line}");
            assert_eq!(event["result_source"], "engine", "{line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_judges_every_anchor_that_grounds_the_action_and_takes_the_worst() {
    let world = World::start().await;
    let good = world.new_anchor(only("grounds_actions", ["ledger.*"])).await;
    world.new_snapshot(&good, 5, "sha256:a").await;
    let other = world.new_anchor(only("grounds_actions", ["payment.*"])).await;
    let bad = world.new_anchor(only("grounds_profiles", ["closing"])).await;
    let draft = world.new_anchor(only("status", "draft")).await;
    let check = world.new_check(nothing()).await;
    let ran = world.run(&check).await;
    let judged: Vec<_> = ran["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["anchor_id"].as_str().unwrap())
        .collect();
    assert_eq!(judged.len(), 2, "{ran:#}");
    assert!(judged.contains(&good.as_str()) && judged.contains(&bad.as_str()));
    assert!(!judged.contains(&other.as_str()) && !judged.contains(&draft.as_str()));
    assert_eq!(ran["coupling_result"], "revalidation_required");
    assert_eq!(ran["snapshot_refs"].as_array().unwrap().len(), 1);
    // An anchor that an assumption names is judged even if it grounds another action.
    let check =
        world.new_check(json!({"assumptions": [{"anchor_id": other, "max_age_seconds": 9}]})).await;
    assert_eq!(world.run(&check).await["findings"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_again_updates_the_drift_that_is_open_and_remembers_the_last_hundred() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let check = world.new_check(nothing()).await;
    world.run(&check).await;
    world.run(&check).await;
    let drift = world.drift(&check).await;
    assert_eq!(drift.len(), 1, "{drift:#?}");
    assert_eq!(world.events("svc.reality.").await, ["svc.reality.drift_detected"]);
    let resolve =
        format!("/api/v1/stable-drift-events/{}/resolve", drift[0]["id"].as_str().unwrap());
    let revoked = world.owner.post(&resolve, only("resolution", "revoked")).await;
    assert_eq!(fault(&revoked), "resolution");
    world.new_snapshot(&anchor, 5, "sha256:a").await;
    let recoupled = world.owner.post(&resolve, only("resolution", "recoupled")).await;
    assert_eq!((recoupled.0, recoupled.1["drift_event"]["status"].text()), (200, "resolved"));
    world.owner.update_reality_anchor(&anchor, only("status", "draft")).await;
    // No active anchor grounds the action any longer.
    assert_eq!(world.run(&check).await["reason_codes"].texts(), ["no_anchor_consulted"]);
    for _ in 0..100 {
        world.run(&check).await;
    }
    let (_, read) = world.owner.get_coupling_check(&check).await;
    let history = read["coupling_check"]["history"].as_array().unwrap();
    assert_eq!(history.len(), 100);
    assert_eq!(history[0]["reason_codes"].texts(), ["no_anchor_consulted"]);
}

impl World {
    /// Creates an anchor that grounds no action. Fields of its freshness contract can be mixed with
    /// its own fields.
    async fn anchor_of(&self, given: Value) -> String {
        let own = ["anchor_type", "status"];
        let (own, contract): (Map<_, _>, Map<_, _>) = given
            .as_object()
            .unwrap()
            .clone()
            .into_iter()
            .partition(|(member, _)| own.contains(&member.as_str()));
        let mut anchor = json!({"grounds_actions": []});
        if !contract.is_empty() {
            let contract = super::with(only("max_staleness_seconds", 60), contract.into());
            anchor["freshness_contract"] = contract;
        }
        self.new_anchor(super::with(anchor, own.into())).await
    }
}
