//! Signatures, key ids, and the JWKS.

use crate::support::Plain;
use authority_crypto::{self as crypto, jwk::thumbprint, verify_with_jwk};
use authority_keys::{Error, Keys, Purpose};
use authority_process::clock::Clock;
use serde_json::Value;

#[track_caller]
fn keys() -> Keys {
    Keys::ephemeral(Clock::default()).unwrap()
}

#[track_caller]
fn jwks(keys: &Keys) -> Vec<Value> {
    let document: Value = serde_json::from_str(&keys.jwks()).unwrap();
    document["keys"].as_array().unwrap().clone()
}

#[test]
fn what_is_signed_verifies_by_kid_and_by_jwks() {
    let keys = keys();
    for purpose in Purpose::ALL {
        let signer = keys.signer(purpose);
        let signature = signer.sign(b"record");
        keys.verify(signer.kid(), b"record", &signature).unwrap();
        let other = keys.verify(signer.kid(), b"recorD", &signature);
        assert!(matches!(other, Err(Error::Crypto(crypto::Error::BadSignature))));
        let published = jwks(&keys);
        let jwk = published.iter().find(|jwk| jwk["kid"] == signer.kid()).unwrap();
        verify_with_jwk(jwk, b"record", &signature).unwrap();
    }
    let (one, two) = (keys.signer(Purpose::Log), keys.signer(Purpose::Evidence));
    assert!(keys.verify(two.kid(), b"x", &one.sign(b"x")).is_err());
    assert!(matches!(keys.verify("svc-log-2026-00000000", b"", b""), Err(Error::UnknownKid(_))));
}

#[test]
fn signatures_are_rfc_8032s() {
    // Ed25519 is deterministic: signing the same bytes again gives the same signature.
    let signer = keys().signer(Purpose::Evidence);
    assert_eq!(signer.sign(b"a"), signer.sign(b"a"));
    assert_ne!(signer.sign(b"a"), signer.sign(b"b"));
}

#[test]
fn a_kid_is_made_of_purpose_year_and_thumbprint() {
    let keys = keys();
    for jwk in jwks(&keys) {
        let kid = jwk["kid"].as_str().unwrap();
        let parts: Vec<&str> = kid.split('-').collect();
        assert_eq!((parts.len(), parts[0]), (4, "svc"));
        assert!(parts[2].parse::<u16>().unwrap() >= 2024);
        assert_eq!(parts[3], &hex::encode(thumbprint(&jwk).unwrap())[..8]);
    }
}

#[test]
fn the_jwks_holds_nothing_private_and_no_token_key() {
    let keys = keys();
    let shown = jwks(&keys);
    assert_eq!(shown.len(), Purpose::ALL.len());
    for jwk in &shown {
        let members: Vec<&String> = jwk.as_object().unwrap().keys().collect();
        for private in ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "private_key"] {
            assert!(!members.iter().any(|member| *member == private));
        }
        assert_eq!((jwk["alg"].text(), jwk["use"].text()), ("EdDSA", "sig"));
    }
    let tokens: Value = serde_json::from_str(&keys.token_jwks()).unwrap();
    let token_key = &tokens["keys"][0];
    assert_eq!((token_key["alg"].text(), token_key.get("d")), ("RS256", None));
    assert!(!shown.iter().any(|jwk| jwk["kid"] == token_key["kid"]));
}

#[test]
fn codes_differ_by_domain_and_installation() {
    let keys = keys();
    assert_eq!(keys.mac("api-key", b"x"), keys.mac("api-key", b"x"));
    assert_ne!(keys.mac("api-key", b"x"), keys.mac("page-token", b"x"));
    assert_ne!(keys.mac("api-key", b"x"), self::keys().mac("api-key", b"x"));
}
