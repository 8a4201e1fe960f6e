//! Requests for export and erasure, the roles that may make them, and withdrawn consent.

use serde_json::{Value, json};

use super::{ANN, BOB, TENANT, World};
use crate::support::{Answered, Plain, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_owner_asks() {
    let world = World::start().await;
    let admin = world.person("admin", "admin@example.org");
    for caller in [&admin, &world.key] {
        for (path, body) in [
            (":export", only("email", ANN)),
            (":erase", json!({"email": ANN, "reason": "x"})),
            (":withdraw-consent", only("email", ANN)),
        ] {
            let (status, _) = caller.post(&format!("/api/v1/personal-data{path}"), body).await;
            assert_eq!(status, 403, "{path}");
        }
        assert_eq!(caller.list_erasures("").await.0, 403);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_named_in_one_way_that_exists() {
    let world = World::start().await;
    let agent = "svc:agent:acme:invoice-bot";
    for (body, status, member) in [
        (only("reason", "x"), 400, "email"),
        (json!({"email": ANN, "external_subject": "a", "reason": "x"}), 400, "email"),
        (json!({"email": "ann", "reason": "x"}), 400, "email"),
        (only("email", ANN), 400, "reason"),
        (json!({"email": ANN, "reason": "Ann@Example.org asked"}), 400, "reason"),
        (json!({"email": ANN, "tenant_id": "none", "reason": "x"}), 400, "tenant_id"),
        (json!({"principal_id": agent, "reason": "x"}), 404, ""),
        // The record of the erasure would still name the owner, who requests it.
        (json!({"email": "owner@example.org", "reason": "x"}), 400, "email"),
    ] {
        let (found, refused) = world.owner.erase_personal_data(body.clone()).await;
        assert_eq!(found, status, "{body}: {refused:#}");
        if status == 400 {
            assert_eq!(refused["details"][0]["field"], member, "{body}: {refused:#}");
        }
    }
    assert_eq!(world.owner.list_erasures("").await.1["erasures"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_has_the_first_answer() {
    let world = World::start().await;
    world.lead(ANN).await;
    let body = json!({"email": ANN, "reason": "x"});
    let call = || {
        let key = [("idempotency-key", "once")];
        let (owner, body) = (world.owner.clone(), body.clone());
        async move { owner.call("POST", "/api/v1/personal-data:erase", Some(body), &key).await }
    };
    let first = call().await;
    assert_eq!((first.0, first.1["erasure"]["erased"]["leads"].number()), (200, 1), "{first:#?}");
    assert_eq!(call().await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn withdrawn_consent_keeps_when_and_where_it_was_given() {
    let world = World::start().await;
    let (hers, his) = (world.lead(ANN).await, world.lead(BOB).await);
    let before = world.owner.get_lead(&hers).await.assert_shown("lead");
    assert!(before["consent_at"].is_string() && before["consent_source"].is_string(), "{before:#}");
    assert_eq!(before["consent_withdrawn_at"], Value::Null);
    let (status, done) = world.owner.withdraw_consent(only("email", "Ann@example.org")).await;
    assert_eq!((status, &done), (200, &json!({"ok": true, "withdrawn": 1})));
    let after = world.owner.get_lead(&hers).await.assert_shown("lead");
    assert_eq!(after["consent_marketing"], false);
    assert!(after["consent_withdrawn_at"].is_string(), "{after:#}");
    for kept in ["consent_at", "consent_source", "submitter_email"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let other = world.owner.get_lead(&his).await.assert_shown("lead");
    assert_eq!(other["consent_marketing"], true);
    let (_, again) = world.owner.withdraw_consent(only("email", ANN)).await;
    assert_eq!(again["withdrawn"], 0, "{TENANT}");
}
