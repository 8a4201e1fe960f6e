//! The algorithms of tokens: the key's type determines how a token is verified, and the issuer's
//! settings determine which algorithms count (RFC 8725, 3.1 and 3.2).

use authority_api::identity::{Algorithm, Caller, Error, Issuer, KeySource};
use authority_keys::Keys;
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{AUDIENCE, MEMBER, OWNER, World};
use crate::support::issuer::{KID, TestIssuer};
use crate::support::{Members, only};

const ISS: &str = "https://id.example.org";
const ALL: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// Returns a world that trusts the issuer with these algorithms.
fn world(issuer: &TestIssuer, algorithms: &[Algorithm], owner: &[Algorithm]) -> World {
    let published = issuer.published.clone();
    let keys = KeySource::local(move || published.lock().1.as_str().into());
    World::of(Keys::ephemeral(Clock::default()).unwrap(), |_| {
        let mut trusted = Issuer::new(issuer.iss.clone(), vec![AUDIENCE.to_owned()], keys);
        trusted.algorithms = algorithms.to_vec();
        trusted.owner_algorithms = owner.to_vec();
        vec![trusted]
    })
}

fn claims(world: &World, metadata: &Value) -> Value {
    json!({"iss": ISS, "aud": AUDIENCE, "sub": "user_1", "public_metadata": metadata,
           "exp": world.clock.now().timestamp() + 600})
}

fn viewer(world: &World) -> Value {
    claims(world, &json!({"role": "viewer", "tenant_id": "svc:tenant:acme"}))
}

fn is_refused(answer: &Result<Caller, Error>) -> bool {
    matches!(answer, Err(Error::Token(_)))
}

fn issuers() -> [TestIssuer; 3] {
    [TestIssuer::rs256(ISS), TestIssuer::es256(ISS), TestIssuer::eddsa(ISS)]
}

#[tokio::test]
async fn a_key_verifies_its_own_algorithm_alone() {
    for issuer in issuers() {
        let world = world(&issuer, &ALL, &ALL);
        let claims = viewer(&world);
        for alg in
            ["RS256", "ES256", "EdDSA", "RS384", "PS256", "ES384", "HS256", "none", "Ed25519", ""]
        {
            let header = json!({"alg": alg, "typ": "JWT", "kid": KID});
            let answer = world.call(MEMBER, &issuer.sign(&header, &claims)).await;
            assert_eq!(answer.is_ok(), alg == issuer.alg(), "{}, {alg}: {answer:?}", issuer.alg());
            assert!(answer.is_ok() || is_refused(&answer), "{answer:?}");
        }
    }
}

/// The known attack: the public key, which anyone can read, as the secret of HS256.
#[tokio::test]
async fn a_public_key_is_not_a_shared_secret() {
    for issuer in issuers() {
        let world = world(&issuer, &ALL, &ALL);
        let (jwk, document) = (issuer.jwk(), issuer.published.lock().1.clone());
        let decoded = |member: &str| {
            URL_SAFE_NO_PAD.decode(jwk[member].as_str().unwrap_or_default()).unwrap_or_default()
        };
        let point = [vec![4], decoded("x"), decoded("y")].concat();
        for secret in [document.into_bytes(), decoded("n"), decoded("x"), point] {
            let header = json!({"alg": "HS256", "typ": "JWT", "kid": KID});
            let token = super::sign_with(&header, &viewer(&world), |bytes| {
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
                ring::hmac::sign(&key, bytes).as_ref().to_vec()
            });
            assert!(is_refused(&world.call(MEMBER, &token).await), "{}", issuer.alg());
        }
    }
}

#[tokio::test]
async fn only_the_issuers_algorithms_count() {
    for issuer in issuers() {
        for one in ALL {
            let world = world(&issuer, &[one], &[one]);
            let answer = world.call(MEMBER, &issuer.token(&viewer(&world))).await;
            let is_own = format!("{one:?}") == issuer.alg();
            assert_eq!(answer.is_ok(), is_own, "{}, {one:?}: {answer:?}", issuer.alg());
        }
    }
    // Without a setting, RS256 alone counts.
    let issuer = TestIssuer::es256(ISS);
    let defaults = Issuer::new(ISS, Vec::new(), KeySource::local(|| "".into()));
    let world = world(&issuer, &defaults.algorithms, &defaults.owner_algorithms);
    assert!(is_refused(&world.call(MEMBER, &issuer.token(&viewer(&world))).await));
}

#[tokio::test]
async fn the_owners_token_is_signed_with_an_algorithm_for_owners() {
    for issuer in issuers() {
        let world = world(&issuer, &ALL, &[Algorithm::RS256]);
        let owner = issuer.token(&claims(&world, &only("role", "owner")));
        let answer = world.call(OWNER, &owner).await;
        assert_eq!(answer.is_ok(), issuer.alg() == "RS256", "{}: {answer:?}", issuer.alg());
        world.call(MEMBER, &issuer.token(&viewer(&world))).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_that_is_of_another_type_than_it_declares_is_not_used() {
    let changes = |issuer: &TestIssuer| -> Vec<(&'static str, Value)> {
        match issuer.alg() {
            "RS256" => vec![("alg", json!("ES256")), ("kty", json!("EC")), ("kty", json!("oct"))],
            "ES256" => vec![
                ("alg", json!("RS256")),
                ("alg", json!("ES384")),
                ("crv", json!("P-384")),
                ("crv", json!("secp256k1")),
                ("crv", Value::Null),
                ("kty", json!("OKP")),
                ("x", json!("AA")),
                ("y", json!(URL_SAFE_NO_PAD.encode([0_u8; 33]))),
                ("y", Value::Null),
                // A point that is not on the curve.
                ("y", json!(URL_SAFE_NO_PAD.encode([1_u8; 32]))),
            ],
            _ => vec![
                ("alg", json!("RS256")),
                ("alg", json!("ES256")),
                ("crv", json!("X25519")),
                ("crv", json!("Ed448")),
                ("kty", json!("EC")),
                ("x", json!(URL_SAFE_NO_PAD.encode([1_u8; 31]))),
                ("x", json!(URL_SAFE_NO_PAD.encode([1_u8; 57]))),
            ],
        }
    };
    for issuer in issuers() {
        let named = issuer.jwk().with("alg", issuer.alg());
        issuer.published.lock().1 = json!({"keys": [named]}).to_string();
        let declared = world(&issuer, &ALL, &ALL);
        declared.call(MEMBER, &issuer.token(&viewer(&declared))).await.unwrap();
        for (member, value) in changes(&issuer) {
            let mut changed = issuer.jwk();
            changed[member] = value.clone();
            issuer.published.lock().1 = json!({"keys": [changed]}).to_string();
            let world = world(&issuer, &ALL, &ALL);
            let answer = world.call(MEMBER, &issuer.token(&viewer(&world))).await;
            assert!(is_refused(&answer), "{}, {member}: {value}: {answer:?}", issuer.alg());
        }
    }
}

#[tokio::test]
async fn an_altered_signature_is_wrong_for_each_type_of_key() {
    for issuer in issuers() {
        let world = world(&issuer, &ALL, &ALL);
        let token = issuer.token(&viewer(&world));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let mut flipped = bytes.clone();
        flipped[0] ^= 1;
        // All zeros is the signature of CVE-2022-21449.
        for other in [flipped, vec![0; bytes.len()], bytes[1..].to_vec(), Vec::new()] {
            let altered = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(&other));
            assert!(is_refused(&world.call(MEMBER, &altered).await), "{}", issuer.alg());
        }
        world.call(MEMBER, &token).await.unwrap();
    }
}
