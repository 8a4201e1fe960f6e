//! The record of a decision can be verified with the published keys.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{ED25519, UnparsedPublicKey},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{Answered, new_tenant, redacted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_verifies_against_the_published_keys() {
    let (_app, client, _) = demo().await;
    for (amount, place) in [(1200.0, "DE"), (25_000.0, "DE"), (1200.0, "US")] {
        let mut ask = asking(amount, place);
        // The fields are out of order here, because the record must sort them itself.
        ask["action_risk_classification"] =
            json!({"risk_tier": "minimal", "required_oversight_mode": "none"});
        ask["action_declaration"] = json!({"rollback_available": true,
            "reversibility": "reversible", "effect_class": "financial"});
        let (_, answer) = client.evaluate(ask).await;
        let id = answer["decision_id"].as_str().unwrap();
        let found = client.get_decision(id).await.assert_status(200);
        assert_eq!(found["evidence_pack"], answer["evidence_pack"]);
        if place == "US" {
            insta::assert_snapshot!("record_of_a_denial", redacted(found.clone()));
        }

        let bytes = serde_json_canonicalizer::to_vec(&found["record"]).unwrap();
        let hash = hex::encode(digest(&SHA256, &bytes));
        assert_eq!(found["evidence_pack"]["record_digest"], format!("sha256:{hash}"));
        // The id consists of the time and the record's own digest.
        assert_eq!(id["svc:decision:".len() + 12..], hash[..52]);

        let signature = &found["evidence_pack"]["signature"];
        let (_, jwks) = client.get("/.well-known/jwks.json").await;
        let key = key(&jwks, signature["kid"].as_str().unwrap());
        let value = STANDARD.decode(signature["value"].as_str().unwrap()).unwrap();
        UnparsedPublicKey::new(&ED25519, &key).verify(&bytes, &value).unwrap();
        let mut altered = bytes.clone();
        altered[10] ^= 1;
        assert!(UnparsedPublicKey::new(&ED25519, &key).verify(&altered, &value).is_err());

        // The record contains the request's context only as a digest.
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("jurisdiction\":"), "{text}");
        assert_eq!(found["record"]["verdict"]["reason_code"], answer["reason_code"]);
    }
}

#[track_caller]
fn key(jwks: &Value, kid: &str) -> Vec<u8> {
    let keys = jwks["keys"].as_array().unwrap();
    let found = keys.iter().find(|key| key["kid"] == kid).unwrap();
    URL_SAFE_NO_PAD.decode(found["x"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_key_sees_no_decision_of_this_one() {
    let (app, client, _) = demo().await;
    let (_, answer) = client.evaluate(asking(1.0, "DE")).await;
    let path = format!("/v1/decisions/{}", answer["decision_id"].as_str().unwrap());
    let (status, _) = app.owner().create_tenant(new_tenant("Other", "other")).await;
    assert_eq!(status, 201);
    let key = app.api_key("svc:tenant:other", &["runtime:read", "runtime:write"]).await;
    let (status, _) = app.client(&key).get(&path).await;
    assert_eq!(status, 404);
    // Another tenant's agent does not resolve either.
    let (_, answer) = app.client(&key).evaluate(asking(1.0, "DE")).await;
    assert_eq!(answer["reason_code"], "subject_unknown", "{answer:#}");
    let (status, _) = app.owner().get(&path).await;
    assert_eq!(status, 200);
}
