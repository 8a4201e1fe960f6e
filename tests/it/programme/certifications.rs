//! Certifications of consultants, and their signatures.

use std::time::Duration;

use authority_crypto::{Pair, Signer, verify_with_jwk};
use authority_keys::Keys;
use authority_process::clock::Clock;
use axum::{Router, routing::get};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{World, id, is, is_about, record};
use crate::support::{Answered, Members, Plain, Wishes, asking, nothing, only};

const PATH: &str = "/consultant-certifications";

/// Returns the keys that the service publishes.
async fn published(world: &World) -> Vec<Value> {
    let (_, jwks) = world.owner.get("/.well-known/jwks.json").await;
    jwks["keys"].as_array().unwrap().clone()
}

#[track_caller]
fn is_signed_by(certification: &Value, keys: &[Value]) {
    let key = keys.iter().find(|key| key["kid"] == certification["signature_kid"]).unwrap();
    let signature = STANDARD.decode(certification["signature_value_b64"].as_str().unwrap());
    let text = certification["signed"].as_str().unwrap();
    verify_with_jwk(key, text.as_bytes(), &signature.unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_signs_with_a_key_that_it_makes_when_it_needs_it() {
    let world = World::start().await;
    let ada = world.consultant("ada").await;
    let of_programme = async || {
        let (_, keys) = world.get("/keys").await;
        let keys = keys["keys"].as_array().unwrap().clone();
        keys.into_iter().filter(|key| key["purpose"] == "programme").collect::<Vec<_>>()
    };
    assert_eq!(of_programme().await.len(), 0);
    let body = json!({
        "consultant_id": ada, "level": "master", "program": "p",
        "not_before": "2020-01-01T00:00:00Z", "not_after": "2099-01-01T00:00:00+01:00",
    });
    let made = world.make(PATH, body).await;
    let signed = format!(
        "{{\"consultant_id\":\"{ada}\",\"kind\":\"svc.certification.v1\",\"level\":\"master\",\
         \"not_after\":\"2098-12-31T23:00:00Z\",\"not_before\":\"2020-01-01T00:00:00Z\",\
         \"program\":\"p\"}}"
    );
    assert_eq!((made["signed"].text(), made["signed_by"].text()), (signed.as_str(), "service"));
    is_signed_by(&made, &published(&world).await);
    let keys = of_programme().await;
    assert_eq!(keys.len(), 1);
    assert_eq!((keys[0]["alg"].text(), keys[0]["managed"].as_bool()), ("EdDSA", Some(true)));
    let other = world.make(PATH, json!({"consultant_id": ada, "level": "associate"})).await;
    assert_eq!(other["signature_kid"], made["signature_kid"]);

    let path = format!("{PATH}/{}", id(&made));
    let (status, changed) = world.patch(&path, only("not_after", "2030-01-01T00:00:00Z")).await;
    let changed = record(&changed);
    assert_eq!((status, changed["not_after"].text()), (200, "2030-01-01T00:00:00Z"));
    assert!(changed["signed"].as_str().unwrap().contains("2030-01-01"), "{changed:#}");
    is_signed_by(&changed, &published(&world).await);
    let early = world.patch(&path, only("not_after", "2019-01-01T00:00:00Z")).await;
    is_about(&early, "not_after");
    let (status, open) = world.patch(&path, only("not_after", Value::Null)).await;
    assert_eq!((status, &record(&open)["not_after"]), (200, &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_is_final() {
    let world = World::start().await;
    let ada = world.consultant("ada").await;
    let made = world.make(PATH, json!({"consultant_id": ada, "level": "master"})).await;
    let path = format!("{PATH}/{}", id(&made));
    is_about(&world.patch(&path, only("revoke", false)).await, "revoke");
    is_about(&world.patch(&path, only("revoke_reason", "x")).await, "revoke_reason");
    is_about(&world.patch(&path, only("level", "associate")).await, "level");
    let (_, revoked) = world.patch(&path, json!({"revoke": true, "revoke_reason": "r"})).await;
    let revoked = record(&revoked);
    assert!(revoked["revoked_at"].is_string() && revoked["revoke_reason"] == "r", "{revoked:#}");
    is(&world.patch(&path, only("revoke", true)).await, 409, "record_is_final");
    is(&world.patch(&path, only("not_after", Value::Null)).await, 409, "record_is_final");
    let (_, gone) = world.delete(&path).await;
    assert!(record(&gone)["deleted_at"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certify_moves_a_consultant_and_a_plain_certification_does_not() {
    let world = World::start().await;
    let ada = world.consultant("ada").await;
    let status = async || record(&world.get(&format!("/consultants/{ada}")).await.1);
    world.make(PATH, json!({"consultant_id": ada, "level": "master"})).await;
    assert_eq!(status().await["status"], "applied");
    let certify = format!("/consultants/{ada}/certify");
    is_about(&world.post(&certify, nothing()).await, "level");
    let (code, both) = world.post(&certify, only("level", "professional")).await;
    assert_eq!((code, both["ok"].as_bool()), (201, Some(true)));
    assert_eq!(both["certification"]["level"], "professional");
    assert_eq!(both["consultant"]["certification_level"], "professional");
    assert_eq!(status().await["status"], "certified");
    let unknown = "/consultants/svc:consultant:none/certify";
    assert_eq!(world.post(unknown, only("level", "master")).await.0, 404);
    for status in ["suspended", "retired"] {
        assert_eq!(
            world.patch(&format!("/consultants/{ada}"), only("status", status)).await.0,
            200
        );
        let refused = world.post(&certify, only("level", "master")).await;
        is(&refused, 409, "transition_not_allowed");
        let refused = world.post(PATH, json!({"consultant_id": ada, "level": "master"})).await;
        is(&refused, 409, "transition_not_allowed");
    }
}

/// A consultant's status is `certified` while a certification is valid, or if a user has set it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_certification_takes_the_status_with_it() {
    let (world, clock) = World::at_a_fixed_time().await;
    let ada = world.consultant("ada").await;
    let status =
        async || record(&world.get(&format!("/consultants/{ada}")).await.1)["status"].take();
    let certify = async |more: Value| {
        let body = only("level", "professional").and(&more);
        let (code, both) = world.post(&format!("/consultants/{ada}/certify"), body).await;
        assert_eq!((code, both["consultant"]["status"].text()), (201, "certified"), "{both:#}");
        format!("{PATH}/{}", both["certification"]["id"].as_str().unwrap())
    };
    let revoke = only("revoke", true);
    let (first, second) = (certify(nothing()).await, certify(nothing()).await);
    assert_eq!(world.patch(&first, revoke.clone()).await.0, 200);
    assert_eq!(status().await, "certified", "another certification is valid");
    assert_eq!(world.patch(&second, revoke.clone()).await.0, 200);
    assert_eq!(status().await, "onboarding");
    let third = certify(nothing()).await;
    assert_eq!(world.delete(&third).await.0, 200);
    assert_eq!(status().await, "onboarding");
    // Sets the certification's end to a time in the future, then to one in the past.
    let fourth = certify(nothing()).await;
    let end = |minutes| only("not_after", (clock.now() + TimeDelta::minutes(minutes)).to_rfc3339());
    assert_eq!(world.patch(&fourth, end(2)).await.0, 200);
    assert_eq!(status().await, "certified");
    assert_eq!(world.patch(&fourth, end(-1)).await.0, 200);
    assert_eq!(status().await, "onboarding");
    // This certification expires as time passes.
    certify(end(1)).await;
    clock.advance(TimeDelta::minutes(2));
    // Starting a node runs the worker that updates the status.
    let wishes = Wishes { clock: clock.clone(), ..Wishes::default() };
    let _beside = world.app.beside(wishes.clone()).await;
    for _ in 0..100 {
        if status().await == "onboarding" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(status().await, "onboarding");
    // The worker changes no other status, and users may change the status themselves.
    let path = format!("/consultants/{ada}");
    assert_eq!(world.patch(&path, only("status", "certified")).await.0, 200);
    assert_eq!(status().await, "certified");
    let fifth = certify(nothing()).await;
    let suspend = format!("{path}/suspend");
    assert_eq!(world.post(&suspend, only("reason", "r")).await.0, 200);
    assert_eq!(world.patch(&fifth, revoke).await.0, 200);
    assert_eq!(status().await, "suspended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_evidence_of_a_certification_exists() {
    let world = World::start().await;
    world.app.demo().await;
    let ada = world.consultant("ada").await;
    let body = |id: &str| json!({"consultant_id": ada, "level": "master", "evidence_pack_id": id});
    let unknown = format!("svc:evidence:{}", "0".repeat(64));
    is_about(&world.post(PATH, body(&unknown)).await, "evidence_pack_id");
    is_about(&world.post(PATH, body("a pack")).await, "evidence_pack_id");
    let key = world.app.api_key("svc:tenant:acme", &["runtime:write", "evidence:write"]).await;
    let key = world.app.client(&key);
    let (_, decided) = key.evaluate(asking(10.0, "DE")).await;
    let decision = decided["decision_id"].as_str().unwrap().to_owned();
    key.seal_decision(&decision).await.assert_status(200);
    world.make(PATH, body(&decision.replace("svc:decision:", "svc:evidence:"))).await;
}

/// Starts a server on this machine with the JWKS of an issuer that has one key. Returns its URL.
async fn issuer(keys: Value) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let text = json!({"keys": [keys]}).to_string();
    let router = Router::new().route("/jwks.json", get(async move || text.clone()));
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuers_signature_is_verified_and_its_end_only_comes_earlier() {
    let pair = Pair::ed25519().unwrap();
    let signer = Signer::read("issuer-1", &pair.private).unwrap();
    let jwk = pair.public_jwk.clone().with("kid", "issuer-1");
    let wishes = Wishes { issuers: vec![issuer(jwk).await], ..Wishes::default() };
    let world = World::wished(wishes).await;
    let ada = world.consultant("ada").await;
    let text = format!(
        "{{\"consultant_id\":\"{ada}\",\"kind\":\"svc.certification.v1\",\"level\":\"master\",\
         \"not_after\":\"2090-01-01T00:00:00Z\"}}"
    );
    let signature = STANDARD.encode(signer.sign(text.as_bytes()));
    let body = |level: &str, kid: Value, value: Value| {
        json!({
            "consultant_id": ada, "level": level, "not_after": "2090-01-01T00:00:00Z",
            "signature_kid": kid, "signature_value_b64": value,
        })
    };
    let (kid, value) = (json!("issuer-1"), json!(signature));
    for (level, kid, value, member) in [
        ("associate", kid.clone(), value.clone(), "signature_value_b64"),
        ("master", json!("issuer-2"), value.clone(), "signature_kid"),
        ("master", kid.clone(), Value::Null, "signature_value_b64"),
        ("master", Value::Null, value.clone(), "signature_kid"),
        ("master", kid.clone(), json!("!!"), "signature_value_b64"),
    ] {
        is_about(&world.post(PATH, body(level, kid, value)).await, member);
    }
    let made = world.make(PATH, body("master", kid, value.clone())).await;
    assert_eq!((made["signed"].text(), made["signed_by"].text()), (text.as_str(), "issuer"));
    let path = format!("{PATH}/{}", id(&made));
    for later in [json!("2091-01-01T00:00:00Z"), Value::Null] {
        let refused = world.patch(&path, only("not_after", &later)).await;
        is(&refused, 409, "transition_not_allowed");
    }
    let (status, earlier) = world.patch(&path, only("not_after", "2080-01-01T00:00:00Z")).await;
    let earlier = record(&earlier);
    assert_eq!((status, earlier["not_after"].text()), (200, "2080-01-01T00:00:00Z"));
    assert_eq!(
        (earlier["signed"].text(), &earlier["signature_value_b64"]),
        (text.as_str(), &value)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_the_service_itself_is_no_issuers() {
    let world = World::start().await;
    let ada = world.consultant("ada").await;
    let signing = world.app.app.keys.programme_signer().await.unwrap();
    let text = format!(
        "{{\"consultant_id\":\"{ada}\",\"kind\":\"svc.certification.v1\",\"level\":\"master\"}}"
    );
    let body = json!({
        "consultant_id": ada, "level": "master", "signature_kid": signing.kid(),
        "signature_value_b64": STANDARD.encode(signing.sign(text.as_bytes())),
    });
    is_about(&world.post(PATH, body).await, "signature_kid");
    // A process that does not store its keys can't create a key for the programme.
    let ephemeral = Keys::ephemeral(Clock::default()).unwrap();
    assert!(ephemeral.programme_signer().await.is_err());
}
