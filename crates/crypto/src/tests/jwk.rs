//! Public keys in JWK form.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use crate::{
    Algorithm, Error, Pair,
    jwk::{kid, thumbprint},
    verify_with_jwk,
};

#[test]
fn a_thumbprint_is_rfc_7638s_and_names_the_key() {
    // The example of RFC 7638, section 3.1.
    let example = json!({"kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29", "n":
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_\
         BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_\
         FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4\
         vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"});
    let thumbprint = URL_SAFE_NO_PAD.encode(thumbprint(&example).unwrap());
    assert_eq!(thumbprint, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    assert_eq!(kid("general", 2026, &example).unwrap(), "svc-general-2026-3736cbb1");
}

#[test]
fn an_alg_that_does_not_fit_the_key_verifies_nothing() {
    let ed25519 = Pair::ed25519().unwrap().public_jwk;
    for alg in ["ES256", "ES384", "RS256", "HS256", "none", "ed25519"] {
        let mut jwk = ed25519.clone();
        jwk["alg"] = json!(alg);
        assert!(matches!(verify_with_jwk(&jwk, b"", &[0; 64]), Err(Error::BadKey(_))), "{alg}");
    }
    assert!(matches!(verify_with_jwk(&ed25519, b"", &[0; 64]), Err(Error::BadKey(_))));
    // The inventory's key for `EdDSA` is P-256, which cannot verify an EdDSA signature.
    let mut elliptic = Pair::inventory(Algorithm::EdDsa).unwrap().public_jwk;
    assert_eq!(elliptic["crv"], "P-256");
    elliptic["alg"] = json!("EdDSA");
    assert!(matches!(verify_with_jwk(&elliptic, b"", &[0; 64]), Err(Error::BadKey(_))));
}
