//! Access tokens that are accepted or rejected.

use authority_api::identity::{Caller, CallerKind, Error, PERSON_INACTIVE, dev_provider::Holder};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{ADMIN, MEMBER, OWNER, World, member, sign_with};
use crate::support::{Members, only};

fn is_refused(answer: &Result<Caller, Error>) -> bool {
    matches!(answer, Err(Error::Token(_)))
}

#[tokio::test]
async fn the_development_providers_tokens_pass_the_common_verifier() {
    let world = World::new();
    let owner = world.dev_token(&Holder::Owner { email: "o@example.com".to_owned() });
    let caller = world.call(OWNER, &owner).await.unwrap();
    assert_eq!(caller.actor, "o@example.com");
    assert!(matches!(&caller.kind, CallerKind::Owner { subject, .. } if !subject.is_empty()));
    assert_eq!(caller.tenant(), None);
    let caller = world.call(ADMIN, &world.dev_token(&member("acme", "admin"))).await.unwrap();
    assert_eq!(caller.tenant().unwrap().slug(), "acme");
    let refused = world.call(OWNER, &world.dev_token(&member("acme", "admin"))).await;
    assert!(matches!(refused, Err(Error::Forbidden(_) | Error::Role(_))));
}

#[tokio::test]
async fn data_that_become_too_old_meanwhile_refuse_nobody_for_good() {
    let world = World::new();
    let owner = world.dev_token(&Holder::Owner { email: "o@example.com".to_owned() });
    world.is_unavailable_at_each_look(OWNER, &owner).await;
    world.is_unavailable_at_each_look(ADMIN, &world.dev_token(&member("acme", "admin"))).await;
    // While the organization's tenant is unknown, the tenant named in the token is not used either.
    let by_organisation = world.token(|claims| {
        claims["org_id"] = "org_acme".into();
        claims["public_metadata"] = json!({"role": "admin", "tenant_id": "svc:tenant:other"});
    });
    world.is_unavailable_at_each_look(ADMIN, &by_organisation).await;
}

#[tokio::test]
async fn only_rs256_counts_whatever_the_token_says() {
    let world = World::new();
    let (header, claims) = (world.header(), world.claims());
    world.call(OWNER, &world.sign(&header, &claims)).await.unwrap();

    let unsigned = sign_with(&json!({"alg": "none", "kid": header["kid"]}), &claims, |_| vec![]);
    assert!(is_refused(&world.call(OWNER, &unsigned).await));
    // The public key is used as a shared secret, which is the known attack of algorithm confusion.
    for secret in [world.keys.token_jwks().to_string(), modulus(&world)] {
        let confused = header.clone().with("alg", "HS256");
        let token = sign_with(&confused, &claims, |bytes| hs256(secret.as_bytes(), bytes));
        assert!(is_refused(&world.call(OWNER, &token).await));
    }
    for alg in ["RS384", "RS512", "PS256", "ES256", "EdDSA", "rs256", ""] {
        let other = header.clone().with("alg", alg);
        assert!(is_refused(&world.call(OWNER, &world.sign(&other, &claims)).await), "{alg}");
    }
}

#[tokio::test]
async fn a_header_that_asks_for_more_is_refused() {
    let world = World::new();
    let changes: [(&str, Value); 8] = [
        ("kid", json!("another")),
        ("kid", json!("")),
        ("kid", Value::Null),
        ("crit", json!(["b64"])),
        ("typ", json!("logout+jwt")),
        ("typ", json!("dpop+jwt")),
        ("enc", json!("A256GCM")),
        ("zip", json!("DEF")),
    ];
    for (member, value) in changes {
        let mut header = world.header();
        header[member] = value.clone();
        let answer = world.call(OWNER, &world.sign(&header, &world.claims())).await;
        assert!(is_refused(&answer), "{member}: {value}");
    }
    // A key that the token itself contains is ignored.
    let foreign = World::new();
    let mut header = world.header();
    let document: Value = serde_json::from_str(&foreign.keys.token_jwks()).unwrap();
    header["jwk"] = document["keys"][0].clone();
    let token = foreign.sign(&header, &world.claims());
    assert_eq!(world.call(OWNER, &token).await, Err(Error::Token("its signature is wrong")));
}

#[tokio::test]
async fn each_claim_counts() {
    let world = World::new();
    let now = world.clock.now().timestamp();
    let changes: [(&str, Value); 21] = [
        ("iss", json!("https://other.example")),
        ("iss", json!(["https://dev-idp.authority.localhost"])),
        ("iss", Value::Null),
        ("aud", json!("other")),
        ("aud", json!([])),
        ("aud", json!(["other"])),
        ("aud", Value::Null),
        ("sub", json!("")),
        ("sub", Value::Null),
        ("sub", json!(7)),
        ("sub", json!("a\u{0}b")),
        ("sub", json!("x".repeat(321))),
        ("exp", json!(now - 31)),
        ("exp", json!((now - 31).to_string())),
        ("exp", json!("soon")),
        ("exp", Value::Null),
        ("exp", json!(-1)),
        ("nbf", json!(now + 31)),
        ("nbf", json!("soon")),
        ("email", json!("a\nb@example.com")),
        ("public_metadata", only("role", 1)),
    ];
    for (member, value) in changes {
        let token = world.token(|claims| claims[member] = value.clone());
        assert!(is_refused(&world.call(OWNER, &token).await), "{member}: {value}");
    }
    for missing in ["iss", "aud", "sub", "exp"] {
        let token = world.token(|claims| drop(claims.as_object_mut().unwrap().remove(missing)));
        assert!(is_refused(&world.call(OWNER, &token).await), "{missing}");
    }
    let leeway: [(&str, Value); 4] = [
        ("exp", json!(now - 29)),
        ("nbf", json!(now + 29)),
        ("aud", json!(["x", "authority"])),
        ("exp", json!(4_102_444_800.5)),
    ];
    for (member, value) in leeway {
        let token = world.token(|claims| claims[member] = value.clone());
        world.call(OWNER, &token).await.unwrap();
    }
}

#[tokio::test]
async fn a_duplicate_claim_is_refused() {
    let world = World::new();
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    for doubled in [r#""sub":"other""#, r#""exp":9999999999"#, r#""public_metadata":{}"#] {
        let claims = world.claims().to_string();
        let claims = format!("{},{doubled}}}", claims.strip_suffix('}').unwrap());
        let text = format!("{}.{}", encode(&world.header().to_string()), encode(&claims));
        let signature = world.keys.token_signer().unwrap().sign(text.as_bytes()).unwrap();
        let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
        assert!(is_refused(&world.call(OWNER, &token).await), "{doubled}");
    }
}

#[tokio::test]
async fn a_remembered_token_still_expires_and_its_tenant_still_counts() {
    let world = World::new();
    let owner = world.token(|_| {});
    world.call(OWNER, &owner).await.unwrap();
    world.clock.advance(TimeDelta::seconds(629));
    world.call(OWNER, &owner).await.unwrap();
    world.clock.advance(TimeDelta::seconds(1));
    assert_eq!(world.call(OWNER, &owner).await, Err(Error::Token("it has expired")));

    let token = world.dev_token(&member("acme", "viewer"));
    world.call(MEMBER, &token).await.unwrap();
    world.book.add_tenant("acme", false);
    assert!(matches!(world.call(MEMBER, &token).await, Err(Error::Forbidden(_) | Error::Role(_))));
}

/// A stream that was opened with a token ends when that token would be refused.
#[tokio::test]
async fn a_caller_carries_the_end_of_its_token() {
    let world = World::new();
    let now = world.clock.now();
    for (exp, lasts) in [(json!(now.timestamp() + 5), 35), (json!(now.timestamp() - 29), 1)] {
        let token = world.token(|claims| claims["exp"] = exp);
        let until = world.call(OWNER, &token).await.unwrap().until.unwrap();
        assert_eq!(until - now, TimeDelta::seconds(lasts));
        world.clock.advance(TimeDelta::seconds(lasts) - TimeDelta::microseconds(1));
        world.call(OWNER, &token).await.unwrap();
        world.clock.advance(TimeDelta::microseconds(1));
        assert!(is_refused(&world.call(OWNER, &token).await));
        world.clock.advance(-TimeDelta::seconds(lasts));
    }
    let far = world.token(|claims| claims["exp"] = json!(4_102_444_800.5));
    assert!(world.call(OWNER, &far).await.unwrap().until.unwrap() > now);
}

#[tokio::test]
async fn whom_the_tenants_records_shut_out_is_refused() {
    let world = World::new();
    let token = world.dev_token(&member("acme", "viewer"));
    world.call(MEMBER, &token).await.unwrap();
    let (tenant, email) = ("svc:tenant:acme".to_owned(), "viewer@acme.example".to_owned());
    let excluded = (tenant, format!("dev|{email}"), Some(email));
    *world.book.excluded.lock() = Some(excluded);
    assert_eq!(world.call(MEMBER, &token).await, Err(PERSON_INACTIVE));
    world.call(MEMBER, &world.dev_token(&member("acme", "admin"))).await.unwrap();
}

#[tokio::test]
async fn every_altered_character_is_noticed() {
    let world = World::new();
    let token = world.token(|_| {});
    world.call(OWNER, &token).await.unwrap();
    for index in (0..token.len()).step_by(7) {
        let mut altered = token.clone().into_bytes();
        altered[index] = if altered[index] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        assert!(is_refused(&world.call(OWNER, &altered).await), "character {index}");
    }
    for text in ["", ".", "..", "a.b.c", "a.b.c.d", "ey", &token[..token.len() - 3]] {
        assert!(world.call(OWNER, text).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn the_tenant_comes_from_the_organisation_or_the_metadata() {
    let world = World::new();
    let token = |org: Value, tenant: Value| {
        world.token(|claims| {
            claims["org_id"] = org;
            claims["public_metadata"] = json!({"role": "viewer", "tenant_id": tenant});
        })
    };
    for (org, tenant) in [
        (json!("org_acme"), Value::Null),
        (json!("org_unknown"), json!("svc:tenant:acme")),
        (json!("org_acme"), json!("svc:tenant:asleep")),
        (Value::Null, json!("svc:tenant:acme")),
        (json!(""), json!("svc:tenant:acme")),
    ] {
        let caller = world.call(MEMBER, &token(org, tenant)).await.unwrap();
        assert_eq!(caller.tenant().unwrap().slug(), "acme");
    }
    for (org, tenant) in [
        (json!("org_unknown"), Value::Null),
        (json!(""), Value::Null),
        (json!("org_asleep"), Value::Null),
        (json!("org_asleep"), json!("svc:tenant:acme")),
        (Value::Null, json!("svc:tenant:unknown")),
        (Value::Null, json!("acme")),
        (Value::Null, json!("svc:tenant:acme:x")),
        (Value::Null, Value::Null),
    ] {
        let answer = world.call(MEMBER, &token(org, tenant)).await;
        assert!(matches!(answer, Err(Error::Forbidden(_) | Error::Role(_))));
    }
}

/// Returns `n` of the development provider's key, as text.
#[track_caller]
fn modulus(world: &World) -> String {
    let document: Value = serde_json::from_str(&world.keys.token_jwks()).unwrap();
    document["keys"][0]["n"].as_str().unwrap().to_owned()
}

fn hs256(secret: &[u8], bytes: &[u8]) -> Vec<u8> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    ring::hmac::sign(&key, bytes).as_ref().to_vec()
}

#[tokio::test]
async fn a_name_that_only_the_service_gives_is_marked_as_a_persons() {
    let world = World::new();
    for name in ["svc:api_key:01a203fac2fa", "svc:agent:acme:bot", "anonymous", "database:x"] {
        for member in ["email", "sub"] {
            let token = world.token(|claims| {
                claims["email"] = Value::Null;
                claims[member] = json!(name);
            });
            let caller = world.call(OWNER, &token).await.unwrap();
            assert_eq!(caller.actor, format!("person:{name}"), "{member}");
            assert_eq!(caller.scope().api_key, None, "{member}");
        }
    }
    let token = world.token(|claims| claims["email"] = json!("agent-authority"));
    assert_eq!(world.call(OWNER, &token).await.unwrap().actor, "person:agent-authority");
}
