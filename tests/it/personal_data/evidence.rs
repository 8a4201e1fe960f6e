//! Signed data still verify after an erasure. A replay that lacks erased inputs is indeterminate.

use authority_evidence::verify::{Trust, Valid, verify};
use serde_json::{Value, json};

use super::{ANN, World};
use crate::evidence::{acts_and_reports::verifies, published, sealed};
use crate::support::{Answered, EVALUATE_DECISION, Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_its_pack_and_the_acts_verify_without_context_and_names() {
    let world = World::start().await;
    let ann = world.person("approver", ANN);
    let (decision, approval) = world.held(&world.key, "ann@example.org").await;
    let (_, earlier) = world.held(&world.key, "Globex").await;
    let act = only("comment", "checked");
    assert_eq!(world.act(&ann, &earlier, "approve", act).await.0, 200);
    let before = sealed(&world.key, &decision).await;
    world.erase_ann().await;
    let keys = published(&world.key).await;
    // The signed record and its pack have not changed.
    let after = sealed(&world.key, &decision).await;
    assert_eq!(after, before, "the pack is the same bytes");
    let trust = Trust { keys: Some(keys.clone()), log_key: None };
    assert_eq!(verify(after.as_bytes(), &trust), Ok(Valid::Trusted));
    world.owner.inspect_decision(&decision).await.assert_status(200);
    // The act no longer contains name or comment, but its signature is still valid.
    let acted = world.owner.get_approval(&earlier).await.assert_shown("approval");
    let act = &acted["acts"][0];
    for gone in ["comment", "by_salt", "comment_salt"] {
        assert_eq!(act[gone], Value::Null, "{gone} in {act:#}");
    }
    assert!(act["record"].as_str().unwrap().contains("by_digest"), "{act:#}");
    verifies(&act["record"], &act["kid"], &act["signature"], &keys);
    // The held request can't be shown: it can't be approved.
    let unshown = world.owner.get_approval(&approval).await.assert_shown("approval");
    assert_eq!(unshown["request"], Value::Null);
    let other = world.person("approver", "carl@example.org");
    let (status, refused) = world.act(&other, &approval, "approve", nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "request_erased"), "{refused:#}");
}

/// A kept answer could have the salt of the erased context. With the salt, the context could be
/// guessed from its digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_salt_of_an_erased_context_is_not_repeated() {
    let world = World::start().await;
    let ask = |payee: &str| {
        let mut ask = crate::support::asking(25_000.0, "DE");
        ask["context"]["payee"] = json!(payee);
        ask["include_record"] = true.into();
        ask
    };
    let call = async |payee: &str| {
        let (path, headers) = (EVALUATE_DECISION, [("idempotency-key", payee)]);
        world.key.call("POST", path, Some(ask(payee)), &headers).await
    };
    let (hers, other) = (call(ANN).await, call("Globex").await);
    assert!(hers.1["context_salt"].is_string(), "{hers:#?}");
    world.erase_ann().await;
    let (status, refused) = call(ANN).await;
    let found = (status, &refused["error"]);
    assert_eq!(found, (409, &json!("idempotency_answer_erased")), "{refused:#}");
    assert_eq!(call("Globex").await, other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_decision_is_replayed_with_no_result() {
    let world = World::start().await;
    let (decision, _) = world.held(&world.key, "ann@example.org").await;
    sealed(&world.key, &decision).await;
    world.erase_ann().await;
    for mode in ["historical_state_snapshot", "current_state"] {
        let asked = json!({"decision_id": decision, "mode": mode});
        let (status, proof) = world.key.mint_replay_proof(asked).await;
        assert_eq!((status, proof["result"].text()), (200, "indeterminate"), "{proof:#}");
        assert_eq!(proof["detail"], "the decision's context or facts were erased");
    }
    let (status, refused) = world.key.get_evidence_bundle(&decision).await;
    assert_eq!((status, refused["error"].text()), (409, "decision_erased"), "{refused:#}");
}

/// Facts name the signer of a standing approval, and many decisions share them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_facts_that_name_the_person_go() {
    let world = World::start().await;
    let ann = world.person("approver", ANN);
    let (_, listed) = ann.list_delegations("").await;
    let delegation = listed["delegations"][0]["id"].as_str().unwrap();
    assert_eq!(ann.approve_delegation(delegation).await.0, 200);
    let (_, allowed) = world.key.evaluate(crate::support::asking(10.0, "DE")).await;
    let decision = allowed["decision_id"].as_str().unwrap();
    let pack = sealed(&world.key, decision).await;
    assert!(world.erase_ann().await["erased"]["facts"].as_i64().unwrap() > 0);
    let (_, proof) = world.key.mint_replay_proof(only("decision_id", decision)).await;
    assert_eq!(proof["result"], "indeterminate", "{proof:#}");
    assert_eq!(sealed(&world.key, decision).await, pack);
}
