//! Anchors: their objects, statuses, versions, lists, verification and limit.

use serde_json::{Value, json};

use super::{TENANT, World, fault, refusal};
use crate::support::{Answered, Plain, new_tenant, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_objects_keep_what_is_unknown_and_check_what_is_known() {
    let world = World::start().await;
    let person = world.person.clone();
    let body = world.anchor(json!({
        "authority": {"owner_entity_id": person, "regulator_id": "BaFin", "desk": {"floor": 3}},
        "freshness_contract": {"max_staleness_seconds": 60, "expected_refresh_seconds": 60,
                               "stale_runtime_effect": "deny", "grace": "none"},
        "source": {"kind": "erp", "region": "eu"},
    }));
    let made = world.owner.create_reality_anchor(body.clone()).await.assert_status(201);
    for member in ["authority", "freshness_contract", "source"] {
        assert_eq!(made["reality_anchor"][member], body[member], "{member}");
    }
    let large = "x".repeat(65 * 1024);
    for (more, field) in [
        (json!({"authority": {}}), "authority.owner_entity_id"),
        (
            json!({"authority": {"owner_entity_id": "svc:agent:acme:none"}}),
            "authority.owner_entity_id",
        ),
        (
            json!({"authority": {"owner_entity_id": person, "jurisdiction": 3}}),
            "authority.jurisdiction",
        ),
        (json!({"freshness_contract": {}}), "freshness_contract.max_staleness_seconds"),
        (
            json!({"freshness_contract": {"max_staleness_seconds": 0}}),
            "freshness_contract.max_staleness_seconds",
        ),
        (
            json!({"freshness_contract": {"max_staleness_seconds": 31_536_001}}),
            "freshness_contract.max_staleness_seconds",
        ),
        (
            json!({"freshness_contract": {"max_staleness_seconds": 5, "expected_refresh_seconds": 6}}),
            "freshness_contract.expected_refresh_seconds",
        ),
        (
            json!({"freshness_contract": {"max_staleness_seconds": 5, "stale_runtime_effect": "stop"}}),
            "freshness_contract.stale_runtime_effect",
        ),
        (json!({"source": {"feeder_key_ids": ["svc:api_key:none"]}}), "source.feeder_key_ids[0]"),
        (json!({"source": {"jwks": [{"kty": "oct", "k": "AA"}]}}), "source.jwks[0]"),
        (json!({"source": {"note": large}}), "source"),
        (only("grounds_actions", ["Payment"]), "grounds_actions[0]"),
        (only("tags", vec!["a"; 65]), "tags"),
    ] {
        let answer = world.owner.create_reality_anchor(world.anchor(more)).await;
        assert_eq!(fault(&answer), field);
    }
}

/// The error shows the form of a key set that is expected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_list_of_keys_is_told_what_one_is() {
    let world = World::start().await;
    for (jwks, field) in [(json!([[]]), "source.jwks[0]"), (json!({"keys": []}), "source.jwks")] {
        let body = world.anchor(json!({"source": {"jwks": jwks}}));
        let answer = world.owner.create_reality_anchor(body).await;
        assert_eq!(fault(&answer), field);
        let problem = answer.1["details"][0]["problem"].as_str().unwrap();
        assert!(problem.contains("public key") && problem.contains("{\"kty\": "), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_begins_as_a_draft_and_its_status_moves_freely() {
    let world = World::start().await;
    let mut body = world.anchor(nothing());
    body.as_object_mut().unwrap().remove("status");
    let (_, made) = world.owner.create_reality_anchor(body).await;
    let made = &made["reality_anchor"];
    assert_eq!((made["status"].text(), made["version"].number()), ("draft", 1));
    let path = format!("/api/v1/reality-anchors/{}", made["id"].as_str().unwrap());
    let mut version = 1;
    for status in ["deprecated", "active", "draft", "deprecated", "draft"] {
        let (code, moved) = world.owner.patch(&path, only("status", status)).await;
        version += 1;
        let moved = &moved["reality_anchor"];
        assert_eq!(
            (code, &moved["status"], &moved["version"]),
            (200, &json!(status), &json!(version))
        );
    }
    assert_eq!(fault(&world.owner.patch(&path, only("status", Value::Null)).await), "status");
    assert_eq!(
        fault(&world.owner.patch(&path, only("anchor_type", "risk_context")).await),
        "anchor_type"
    );
    let reason = only("reason", "replaced");
    let (code, gone) = world.owner.post(&format!("{path}/deprecate"), reason).await;
    let gone = &gone["reality_anchor"];
    assert_eq!(
        (code, gone["status"].text(), gone["deprecate_reason"].text()),
        (200, "deprecated", "replaced")
    );
    let (code, deleted) = world.owner.call("DELETE", &path, None, &[]).await;
    assert_eq!(code, 200);
    assert!(deleted["reality_anchor"]["deleted_at"].is_string(), "{deleted:#}");
    assert_eq!(world.owner.get(&path).await.0, 404);
    assert_eq!(world.owner.get(&format!("{path}?deleted=true")).await.0, 200);
    assert_eq!(world.owner.patch(&path, only("status", "active")).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_filtered_and_searched_for_the_text_itself() {
    let world = World::start().await;
    for (name, description) in
        [("Ledger 100%", "books"), ("Ledger 1000", "the BOOKS"), ("Weather", "none")]
    {
        world.new_anchor(json!({"display_name": name, "description": description})).await;
    }
    let none = json!({"display_name": "Draft", "anchor_type": "risk_context", "status": "draft"});
    world.new_anchor(none).await;
    for (query, count) in [
        ("q=ledger", 2),
        ("q=100%25", 1),
        ("q=books", 2),
        ("q=_", 0),
        ("status=draft", 1),
        ("anchor_type=risk_context", 1),
        ("status=active", 3),
    ] {
        let (_, found) = world
            .owner
            .list_reality_anchors(&format!("tenant_id={TENANT}&count=true&{query}"))
            .await;
        assert_eq!(found["total"], count, "{query}: {found:#}");
    }
    // Among the tenant's users, only those with a deciding or auditing role can read its anchors.
    for (role, status) in
        [("admin", 200), ("auditor", 200), ("approver", 200), ("legal", 200), ("viewer", 403)]
    {
        let person = world.app.client(&world.app.member_token(TENANT, role));
        let (code, found) = person.list_reality_anchors("count=true").await;
        assert_eq!(code, status, "{role}: {found:#}");
        assert!(code != 200 || found["total"] == 4, "{role}");
    }
    let other = new_tenant("Other", "other");
    assert_eq!(world.owner.create_tenant(other).await.0, 201);
    let stranger = world.app.client(&world.app.member_token("svc:tenant:other", "admin"));
    let (_, found) = stranger.list_reality_anchors("count=true").await;
    assert_eq!(found["total"], 0, "{found:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifying_judges_the_newest_snapshot_and_activates_a_coupled_draft() {
    let world = World::start().await;
    let id = world.new_anchor(only("status", "draft")).await;
    let verify = async || world.owner.verify_reality_anchor(&id).await.1["reality_anchor"].clone();
    let missing = verify().await;
    let found = &missing["verification"];
    assert_eq!(found["coupling_result"], "revalidation_required");
    assert_eq!(found["drift_type"], "source_of_truth_stale");
    assert_eq!((&found["snapshot_id"], found["signature"].text()), (&Value::Null, "none"));
    // Verifying an anchor does not change its version.
    assert_eq!((missing["status"].text(), missing["version"].number()), ("draft", 1));
    world.new_snapshot(&id, 61, "sha256:old").await;
    let stale = verify().await;
    assert_eq!(stale["verification"]["drift_type"], "verified_but_stale");
    assert_eq!(stale["status"], "draft");
    let newest = world.new_snapshot(&id, 1, "sha256:new").await;
    let coupled = verify().await;
    assert_eq!(coupled["verification"]["coupling_result"], "coupled");
    assert_eq!(coupled["verification"]["snapshot_id"], newest.as_str());
    assert_eq!((coupled["status"].text(), coupled["version"].number()), ("active", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_has_256_active_anchors_at_most() {
    let world = World::start().await;
    for _ in 0..256 {
        world.new_anchor(json!({"grounds_actions": [], "freshness_contract": null})).await;
    }
    let full = world.owner.create_reality_anchor(world.anchor(nothing())).await;
    assert_eq!(refusal(&full), (409, "limit_exceeded".to_owned()));
    let draft = world.new_anchor(only("status", "draft")).await;
    let full = world.owner.update_reality_anchor(&draft, only("status", "active")).await;
    assert_eq!(refusal(&full), (409, "limit_exceeded".to_owned()));
    let (_, one) = world.owner.list_reality_anchors(&format!("tenant_id={TENANT}&limit=1")).await;
    let one = one["reality_anchors"][0]["id"].as_str().unwrap();
    let (code, _) = world.owner.deprecate_reality_anchor(one).await;
    assert_eq!(code, 200);
    assert_eq!(world.owner.update_reality_anchor(&draft, only("status", "active")).await.0, 200);
}
