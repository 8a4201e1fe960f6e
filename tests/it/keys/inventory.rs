//! Signing keys in the database: created once, shared by all nodes, revoked for good.

use std::sync::Arc;

use authority_crypto::{self as crypto, Algorithm, KeyRing};
use authority_keys::{Error, Keys, NewKey, Purpose, SigningKey};
use authority_process::clock::Clock;
use authority_store::{Db, Scope, Store};
use chrono::{DateTime, TimeDelta};
use diesel_async::SimpleAsyncConnection;
use serde_json::Value;

use crate::support::database::Database;

/// A database, and the key ring that encrypts its keys.
pub(super) struct Place {
    database: Database,
    pub(super) store: Store,
    ring: String,
    clock: Clock,
}

impl Place {
    pub(super) async fn new() -> Self {
        let database = Database::fresh().await;
        let store = database.store();
        let clock = Clock::fixed(DateTime::from_timestamp(1_800_000_000, 0).unwrap());
        let ring = KeyRing::generate().unwrap();
        Self { database, store, ring, clock }
    }

    async fn node(&self, ring: &str) -> Result<Keys, Error> {
        let ring = KeyRing::parse(ring).unwrap();
        Keys::start(self.store.clone(), ring, self.clock.clone(), true).await
    }

    /// Creates a signing key, as a request would.
    pub(super) async fn create(&self, keys: &Keys, new: NewKey) -> SigningKey {
        let pair = keys.pair(new.algorithm).await.unwrap();
        let (own, scope) = (keys.clone(), Scope { actor: "o".to_owned(), ..Scope::service() });
        let made = self
            .store
            .write_tx(&scope, async move |db| own.create(db, &new, &pair).await)
            .await
            .unwrap();
        keys.refresh().await.unwrap();
        made
    }

    pub(super) async fn keys(&self) -> Keys {
        self.node(&self.ring).await.unwrap()
    }

    pub(super) async fn owner(&self) -> Db {
        self.database.owner().await
    }

    pub(super) async fn run(&self, sql: &str) -> Result<(), diesel::result::Error> {
        self.database.owner().await.batch_execute(sql).await
    }
}

#[track_caller]
fn published(keys: &Keys) -> Vec<Value> {
    let document: Value = serde_json::from_str(&keys.jwks()).unwrap();
    document["keys"].as_array().unwrap().clone()
}

fn new(algorithm: Algorithm) -> NewKey {
    let (purpose, created_by) = ("general".to_owned(), "o@example.com".to_owned());
    NewKey { algorithm, purpose, notes: Some("a note".to_owned()), created_by }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_agree() {
    let place = Arc::new(Place::new().await);
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let place = Arc::clone(&place);
            tokio::spawn(async move { place.keys().await })
        })
        .collect();
    let mut nodes = Vec::new();
    for start in starts {
        nodes.push(start.await.unwrap());
    }
    let signature = nodes[0].signer(Purpose::Evidence).sign(b"record");
    for node in &nodes {
        for purpose in Purpose::ALL {
            assert_eq!(node.signer(purpose).kid(), nodes[0].signer(purpose).kid());
        }
        node.verify(node.signer(Purpose::Evidence).kid(), b"record", &signature).unwrap();
        assert_eq!(node.mac("api-key", b"x"), nodes[0].mac("api-key", b"x"));
        assert_eq!(node.jwks(), nodes[0].jwks());
        assert_eq!(node.token_signer().unwrap().kid(), nodes[0].token_signer().unwrap().kid());
        let sealed = nodes[0].seal(b"place", b"secret").unwrap();
        assert_eq!(node.open(b"place", &sealed).unwrap(), b"secret");
    }
    let listed = nodes[0].list().await.unwrap();
    assert_eq!(listed.len(), Purpose::ALL.len() + 1);
    assert!(listed.iter().all(|key| key.managed && key.status == "active"));
    assert_eq!(listed[0].rotation_due_at, Some(place.clock.now() + TimeDelta::days(90)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_ring_refuses_and_a_new_one_takes_over() {
    let place = Place::new().await;
    let keys = place.keys().await;
    let other = KeyRing::generate().unwrap();
    assert!(matches!(
        place.node(&other).await.err(),
        Some(Error::Crypto(crypto::Error::UnknownRingKey(_)))
    ));
    // The new ring key is listed before the old one. After rewrapping, the old one may be removed.
    let both = place.node(&format!("{other}{}", place.ring)).await.unwrap();
    assert_eq!(both.rewrap().await.unwrap(), Purpose::ALL.len() + 2);
    assert_eq!(both.rewrap().await.unwrap(), 0);
    let after = place.node(&other).await.unwrap();
    assert_eq!(after.mac("api-key", b"x"), keys.mac("api-key", b"x"));
    assert_eq!(after.jwks(), keys.jwks());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_or_altered_private_key_is_refused() {
    let place = Place::new().await;
    place.keys().await;
    place
        .run(
            "SELECT set_config('role', authority_role('system'), false);
             UPDATE signing_keys a SET private_key = b.private_key FROM signing_keys b
             WHERE a.purpose = 'log' AND b.purpose = 'evidence'",
        )
        .await
        .unwrap();
    assert!(matches!(
        place.node(&place.ring).await.err(),
        Some(Error::Crypto(crypto::Error::Sealed))
    ));
}

/// If it were, an attacker with write access to the table, but no ring, could sign valid evidence.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_service_did_not_make_is_not_published() {
    let place = Place::new().await;
    let keys = place.keys().await;
    let before = keys.jwks();
    for (n, (managed, private)) in
        [("true", "NULL"), ("false", "NULL"), ("true", "private_key"), ("false", "'x'")]
            .into_iter()
            .enumerate()
    {
        let add = format!(
            "SELECT set_config('role', authority_role('system'), false);
             INSERT INTO signing_keys
               (kid, alg, purpose, status, managed, created_at, created_by, public_jwk, private_key)
             SELECT kid || '-{n}', alg, purpose, 'retired', {managed}, created_at, created_by,
               jsonb_set(public_jwk, '{{x}}', '\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"'), {private}
             FROM signing_keys WHERE purpose = 'evidence' AND status = 'active'"
        );
        place.run(&add).await.unwrap();
    }
    keys.refresh().await.unwrap();
    assert_eq!(keys.jwks(), before);
    assert_eq!(keys.ed25519_of(Purpose::Evidence).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_managed_key_lets_its_successor_sign() {
    let place = Place::new().await;
    let (one, two) = (place.keys().await, place.keys().await);
    let before = one.signer(Purpose::Evidence);
    let signature = before.sign(b"event");
    place.clock.advance(TimeDelta::days(1));
    let revoked = one.revoke(before.kid(), "o@example.com").await.unwrap();
    assert_eq!((revoked.status.as_str(), revoked.revoked_at), ("revoked", Some(place.clock.now())));
    let after = one.signer(Purpose::Evidence);
    assert_ne!(after.kid(), before.kid());
    // Another node signs with the revoked key until it reads the keys again. Earlier signatures
    // stay valid.
    assert_eq!(two.signer(Purpose::Evidence).kid(), before.kid());
    two.refresh().await.unwrap();
    assert_eq!(two.signer(Purpose::Evidence).kid(), after.kid());
    two.verify(before.kid(), b"event", &signature).unwrap();
    let shown = published(&two);
    let revoked = shown.iter().find(|jwk| jwk["kid"] == before.kid()).unwrap();
    assert_eq!(revoked["revoked_at"], "2027-01-16T08:00:00Z");
    assert!(shown.iter().any(|jwk| jwk["kid"] == after.kid() && jwk.get("revoked_at").is_none()));

    for kid in [before.kid(), "svc-none-2026-00000000"] {
        assert!(matches!(one.revoke(kid, "o").await, Err(Error::NotFoundOrRevoked(_))));
    }
    let back = format!(
        "SELECT set_config('role', authority_role('system'), false);
         UPDATE signing_keys SET status = 'active', revoked_at = NULL
         WHERE kid = '{}'",
        before.kid()
    );
    assert!(place.run(&back).await.unwrap_err().to_string().contains("stays so"));

    // Receivers of webhooks must not trust a revoked key: it is unpublished at once.
    let webhooks = one.webhook_signer().unwrap();
    one.revoke(webhooks.kid(), "o@example.com").await.unwrap();
    assert!(published(&one).iter().all(|jwk| jwk["kid"] != webhooks.kid()));
    place.clock.advance(TimeDelta::minutes(10) - TimeDelta::microseconds(1));
    assert!(one.webhook_signer().is_none());
    place.clock.advance(TimeDelta::microseconds(1));
    assert_eq!(one.webhook_signer().unwrap().kid(), one.signer(Purpose::Webhook).kid());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_the_inventory_never_sign() {
    let place = Place::new().await;
    let keys = place.keys().await;
    let signing = keys.signer(Purpose::Evidence);
    let mut evidence = new(Algorithm::EdDsa);
    evidence.purpose = "evidence".to_owned();
    let posted = place.create(&keys, evidence).await;
    assert_eq!(posted.public_jwk["crv"], "P-256");
    assert!(!posted.managed && posted.kid.starts_with("svc-evidence-2027-"));
    assert_eq!(keys.signer(Purpose::Evidence).kid(), signing.kid());
    for algorithm in Algorithm::ALL {
        let made = place.create(&keys, new(algorithm)).await;
        assert_eq!((made.alg.as_str(), made.notes.as_deref()), (algorithm.name(), Some("a note")));
        assert_eq!(made.created_by, "o@example.com");
        assert_eq!(made.activated_at, Some(place.clock.now()));
        assert_eq!(made.rotation_due_at, Some(place.clock.now() + TimeDelta::days(90)));
    }
    let shown = published(&keys);
    assert_eq!(shown.len(), Purpose::ALL.len() + 5);
    let posted = shown.iter().find(|jwk| jwk["kid"] == posted.kid.as_str()).unwrap();
    assert_eq!((posted.get("alg"), posted.get("d")), (None, None));
    let listed = keys.list().await.unwrap();
    let revoked = &listed[0].kid;
    keys.revoke(revoked, "o").await.unwrap();
    assert_eq!(&keys.list().await.unwrap().last().unwrap().kid, revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_roles_reach_no_signing_key() {
    let place = Place::new().await;
    place.keys().await;
    for role in ["tenant", "recorder"] {
        for table in ["signing_keys", "service_secrets", "key_rotations"] {
            let sql = format!(
                "SELECT set_config('role', authority_role('{role}'), false); TABLE {table}"
            );
            let read = place.run(&sql).await;
            assert!(read.unwrap_err().to_string().contains("permission denied"), "{role} {table}");
        }
    }
    let erase = place
        .run("SELECT set_config('role', authority_role('system'), false); DELETE FROM signing_keys")
        .await;
    assert!(erase.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_of_an_api_key_is_no_change_and_its_secret_no_history() {
    let place = Place::new().await;
    place
        .run(
            "BEGIN; SELECT set_config('role', authority_role('system'), true);
             SET LOCAL authority.actor = 'o';
             INSERT INTO tenants (id, slug, name, state, env, contract_status, sla_tier, region,
                                  durability, created_by)
             VALUES ('svc:tenant:a', 'a', 'A', 'active', 'sandbox', 'lead', 'pilot', 'x', 'x', 'o');
             INSERT INTO api_keys (id, tenant_id, label, prefix, scopes, principal_ids,
                                   ip_allowlist, status, created_by, secret_code)
             VALUES ('svc:api_key:1', 'svc:tenant:a', 'l', 'svc_dev_1', '{}', '{}', '{}', 'active',
                     'o', decode(repeat('ab', 32), 'hex'));
             COMMIT;
             BEGIN; SELECT set_config('role', authority_role('system'), true);
             UPDATE api_keys SET last_used_at = now(); COMMIT",
        )
        .await
        .unwrap();
    let counted = "DO $$ BEGIN
        ASSERT (SELECT count(*) FROM record_versions WHERE table_name = 'api_keys') = 1;
        ASSERT (SELECT count(*) FROM authority_changes WHERE table_name = 'api_keys') = 1;
        ASSERT NOT EXISTS (SELECT FROM record_versions WHERE body::text LIKE '%abab%');
        END $$";
    place.run(counted).await.unwrap();
    place
        .run(
            "BEGIN; SELECT set_config('role', authority_role('system'), true);
             SET LOCAL authority.actor = 'o';
             UPDATE api_keys SET status = 'revoked', revoked_at = now(); COMMIT",
        )
        .await
        .unwrap();
    place.run(&counted.replace(") = 1", ") = 2")).await.unwrap();
}
