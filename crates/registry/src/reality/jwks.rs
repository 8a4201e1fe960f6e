//! An anchor's public keys (RFC 7517), and the signatures that they make.

use authority_crypto::{Algorithm, Error as CryptoError, jwk, verify};
use authority_model::proto::reality::{RealityAnchor, RealitySnapshot};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::Value;

use super::signed_snapshot;

/// Members of private keys (RFC 7518, section 6).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
/// What each is.
const EXAMPLE_KEY: &str = "must be a public key as a JWK, an object such as {\"kty\": \"OKP\", \"crv\": \"Ed25519\", \
                           \"x\": \"…\"}";
/// What the list of them is: not the `{\"keys\": […]}` of a published set.
pub(super) const EXAMPLE_LIST: &str = "must be a list of at most 4 public keys as JWKs, such as [{\"kty\": \"OKP\", \
                                       \"crv\": \"Ed25519\", \"x\": \"…\"}]: of a JWK Set, the list in its `keys`";
/// Bytes of a modulus of 2048 bits.
const SMALLEST_MODULUS: usize = 256;

/// The key's thumbprint (RFC 7638), as base64url.
pub(super) fn thumbprint(key: &Value) -> Option<String> {
    jwk::thumbprint(key).ok().map(|print| URL_SAFE_NO_PAD.encode(print))
}

/// The thumbprint of a public key that can verify, or what is wrong with it.
pub(super) fn checked(key: &Value) -> Result<String, String> {
    let members = key.as_object().ok_or(EXAMPLE_KEY)?;
    if let Some(private) = PRIVATE.iter().find(|name| members.contains_key(**name)) {
        return Err(format!("holds `{private}`, which is private: give the public key alone"));
    }
    let algorithm = algorithm_of(key).ok_or(
        "must be an OKP key on Ed25519, an EC key on P-256 or P-384, or an RSA key, and its `alg` \
         one of EdDSA, ES256, ES384, RS256 that fits",
    )?;
    if algorithm == Algorithm::Rs256 {
        let modulus = jwk::integer(key, "n").map_err(|error| error.to_string())?;
        if modulus.len() < SMALLEST_MODULUS {
            return Err("is an RSA key of less than 2048 bits".to_owned());
        }
    }
    // An empty signature is nobody's: whether the key itself can be read is what is asked.
    match verify(key, algorithm, &[], &[]) {
        Ok(()) | Err(CryptoError::BadSignature) => {}
        Err(error) => return Err(error.to_string()),
    }
    thumbprint(key).ok_or_else(|| "has no thumbprint".to_owned())
}

/// What the key signs with, by its type and curve; `None` if it says otherwise itself.
fn algorithm_of(key: &Value) -> Option<Algorithm> {
    let word = |member: &str| key.get(member).and_then(Value::as_str).unwrap_or_default();
    let algorithm = match (word("kty"), word("crv")) {
        ("OKP", "Ed25519") => Algorithm::EdDsa,
        ("EC", "P-256") => Algorithm::Es256,
        ("EC", "P-384") => Algorithm::Es384,
        ("RSA", _) => Algorithm::Rs256,
        _ => return None,
    };
    let stated = key.get("alg");
    stated.is_none_or(|alg| alg.as_str() == Some(algorithm.name())).then_some(algorithm)
}

/// The keys in an anchor's source.
pub(super) fn keys(anchor: &RealityAnchor) -> &[Value] {
    let list = anchor.source.as_ref().and_then(|source| source.0.get("jwks"));
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a snapshot's signature is by an anchor's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Signature {
    /// There is none.
    None,
    /// It names no key of the anchor.
    KeyUnknown,
    /// It is not that key's.
    Invalid,
    /// By the key with this thumbprint.
    Valid(String),
}

impl Signature {
    pub(super) fn of(snapshot: &RealitySnapshot, keys: &[Value]) -> Self {
        let Some(signature) = &snapshot.signature else { return Self::None };
        let text = |name: &str| signature.0.get(name).and_then(Value::as_str);
        let Some(kid) = text("kid") else { return Self::KeyUnknown };
        let is_named = |key: &&Value| {
            key.get("kid").and_then(Value::as_str) == Some(kid)
                || thumbprint(key).as_deref() == Some(kid)
        };
        let mut named = keys.iter().filter(is_named).peekable();
        if named.peek().is_none() {
            return Self::KeyUnknown;
        }
        let Some(algorithm) = text("alg").and_then(Algorithm::named) else { return Self::Invalid };
        let bytes = text("value_b64").and_then(|value| STANDARD.decode(value).ok());
        let (Some(bytes), Ok(signed)) = (bytes, signed_snapshot::text(snapshot)) else {
            return Self::Invalid;
        };
        let mut valid = named.filter(|key| {
            algorithm_of(key) == Some(algorithm) && verify(key, algorithm, &signed, &bytes).is_ok()
        });
        valid.next().and_then(thumbprint).map_or(Self::Invalid, Self::Valid)
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::KeyUnknown => "key_unknown",
            Self::Invalid => "invalid",
            Self::Valid(_) => "valid",
        }
    }
}
