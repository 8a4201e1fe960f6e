//! Verifies signatures.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
};
use serde_json::Value;

use super::{Algorithm, Error, jwk};

/// Verifies with a key of a JWKS. A key without `alg` is refused.
pub fn verify_with_jwk(jwk: &Value, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
    let algorithm = jwk.get("alg").and_then(Value::as_str).and_then(Algorithm::named);
    let algorithm = algorithm.ok_or(Error::BadKey("its `alg` is absent or unknown"))?;
    verify(jwk, algorithm, bytes, signature)
}

/// Verifies with a raw Ed25519 public key (RFC 8032).
pub fn verify_ed25519(public_key: &[u8; 32], bytes: &[u8], signature: &[u8; 64]) -> bool {
    let key = ParsedPublicKey::new(&ED25519, public_key);
    key.is_ok_and(|key| key.verify_sig(bytes, signature).is_ok())
}

/// Verifies with a JWK (RFC 7517) for `algorithm`.
///
/// # Errors
/// The key is not for that algorithm, or the signature is not valid for this key and `bytes`.
pub fn verify(
    jwk: &Value,
    algorithm: Algorithm,
    bytes: &[u8],
    signature: &[u8],
) -> Result<(), Error> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str).unwrap_or_default();
    let unreadable = Error::BadKey("its fields are not a public key");
    let key = match (algorithm, word("kty"), word("crv")) {
        (Algorithm::EdDsa, "OKP", "Ed25519") => {
            ParsedPublicKey::new(&ED25519, jwk::bytes(jwk, "x")?).map_err(|_| unreadable)?
        }
        (Algorithm::Es256, "EC", "P-256") => {
            ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point(jwk)?).map_err(|_| unreadable)?
        }
        (Algorithm::Es384, "EC", "P-384") => {
            ParsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point(jwk)?).map_err(|_| unreadable)?
        }
        (Algorithm::Rs256, "RSA", "") => {
            let parts =
                RsaPublicKeyComponents { n: jwk::integer(jwk, "n")?, e: jwk::integer(jwk, "e")? };
            return parts
                .verify(&RSA_PKCS1_2048_8192_SHA256, bytes, signature)
                .map_err(|_| Error::BadSignature);
        }
        _ => return Err(Error::BadKey("its `kty` and `crv` do not match its `alg`")),
    };
    key.verify_sig(bytes, signature).map_err(|_| Error::BadSignature)
}

fn point(jwk: &Value) -> Result<Vec<u8>, Error> {
    Ok([&[4][..], &jwk::bytes(jwk, "x")?, &jwk::bytes(jwk, "y")?].concat())
}
