//! Signed snapshots: if an anchor has keys, it accepts only snapshots with a signature by these
//! keys.

use authority_crypto::{Pair, Signer};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{TENANT, World, ago, refusal};
use crate::support::{Answered, Members, only};

/// The signing key of a source.
struct Key {
    signer: Signer,
    jwk: Value,
}

impl Key {
    fn new(kid: &str) -> Self {
        let pair = Pair::ed25519().unwrap();
        let jwk = pair.public_jwk.with("kid", kid);
        Self { signer: Signer::read(kid, &pair.private).unwrap(), jwk }
    }

    /// Returns the body with its signature, over the text that the service specifies.
    fn signed(&self, mut body: Value) -> Value {
        let mut text = only("kind", "svc.reality.snapshot.v1");
        for member in [
            "tenant_id",
            "anchor_id",
            "sampled_at",
            "valid_until",
            "source_version",
            "content_hash",
        ] {
            if !body[member].is_null() {
                text[member] = body[member].clone();
            }
        }
        let text = serde_json_canonicalizer::to_vec(&text).unwrap();
        let value = STANDARD.encode(self.signer.sign(&text));
        body["signature"] = json!({"alg": "EdDSA", "kid": self.signer.kid(), "value_b64": value});
        body
    }
}

fn body(anchor: &str, seconds: i64) -> Value {
    json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": ago(seconds),
           "content_hash": format!("sha256:{seconds}"), "source_version": "7"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_with_keys_takes_only_what_one_of_them_signed() {
    let world = World::start().await;
    let (key, other) = (Key::new("erp-1"), Key::new("erp-1"));
    let anchor = world.new_anchor(json!({"source": {"jwks": [key.jwk]}})).await;
    let post = async |body| world.owner.create_reality_snapshot(body).await;
    let invalid = (400, "signature_invalid".to_owned());
    // Unsigned snapshots are refused even from the owner.
    assert_eq!(refusal(&post(body(&anchor, 40)).await), invalid);
    assert_eq!(refusal(&post(other.signed(body(&anchor, 40))).await), invalid);
    let altered = key.signed(body(&anchor, 40)).with("content_hash", "sha256:other");
    assert_eq!(refusal(&post(altered).await), invalid);
    let unsigned =
        key.signed(body(&anchor, 40)).with("observations", json!([{"path": "/a", "value": 1}]));
    assert_eq!(refusal(&post(unsigned).await), invalid);
    let made = post(key.signed(body(&anchor, 40))).await.assert_status(201);
    let made = &made["reality_snapshot"];
    let (_, read) = world.owner.get_reality_anchor(&anchor).await;
    assert_eq!(made["signed_by"], read["reality_anchor"]["jwk_thumbprints"][0]);
    let signature = async || {
        let (_, verified) = world.owner.verify_reality_snapshot(made["id"].as_str().unwrap()).await;
        verified["reality_snapshot"]["verification"]["signature"].clone()
    };
    assert_eq!(signature().await, "valid");
    // Once the anchor no longer has the key, the snapshot is ignored.
    let newest = async || {
        let (_, verified) = world.owner.verify_reality_anchor(&anchor).await;
        verified["reality_anchor"]["verification"]["snapshot_id"].clone()
    };
    assert_eq!(newest().await, made["id"]);
    let source = json!({"source": {"jwks": [Key::new("erp-2").jwk]}});
    assert_eq!(world.owner.update_reality_anchor(&anchor, source).await.0, 200);
    assert_eq!(newest().await, Value::Null);
    assert_eq!(signature().await, "key_unknown");
    let source = json!({"source": {"jwks": [other.jwk]}});
    assert_eq!(world.owner.update_reality_anchor(&anchor, source).await.0, 200);
    assert_eq!(signature().await, "invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_key_is_refused() {
    let world = World::start().await;
    let jwk = Key::new("erp-1").jwk.with("d", "AAAA");
    let answer =
        world.owner.create_reality_anchor(world.anchor(json!({"source": {"jwks": [jwk]}}))).await;
    assert_eq!(super::fault(&answer), "source.jwks[0]");
}
