//! An anchor's public keys (RFC 7517) and the signatures made with them.

use authority_crypto::{Algorithm, Error as CryptoError, jwk, verify};
use authority_model::proto::reality::{RealityAnchor, RealitySnapshot};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::Value;

use super::signed_snapshot;

/// Fields of private keys (RFC 7518, section 6).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
/// The expected form of a key, for error messages.
const EXAMPLE_KEY: &str = "must be a public key as a JWK, an object such as {\"kty\": \"OKP\", \"crv\": \"Ed25519\", \
                           \"x\": \"…\"}";
/// The expected form of the key list, for error messages. A JWK Set, `{"keys": […]}`, is refused.
pub(super) const EXAMPLE_LIST: &str = "must be a list of at most 4 public keys as JWKs, such as [{\"kty\": \"OKP\", \
                                       \"crv\": \"Ed25519\", \"x\": \"…\"}]: for a JWK Set, send the list in its `keys`";
/// The size of a 2048-bit modulus, in bytes.
const SMALLEST_MODULUS: usize = 256;

/// Returns the key's thumbprint (RFC 7638), as base64url.
pub(super) fn thumbprint(key: &Value) -> Option<String> {
    jwk::thumbprint(key).ok().map(|print| URL_SAFE_NO_PAD.encode(print))
}

/// Returns the thumbprint of a usable public key, or the problem with the key.
pub(super) fn checked(key: &Value) -> Result<String, String> {
    let members = key.as_object().ok_or(EXAMPLE_KEY)?;
    if let Some(private) = PRIVATE.iter().find(|name| members.contains_key(**name)) {
        return Err(format!("contains the private field `{private}`; send only the public key"));
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
    // An empty signature is never valid. The call only checks whether the key can be read.
    match verify(key, algorithm, &[], &[]) {
        Ok(()) | Err(CryptoError::BadSignature) => {}
        Err(error) => return Err(error.to_string()),
    }
    thumbprint(key).ok_or_else(|| "has no thumbprint".to_owned())
}

/// Returns the key's algorithm by its type and curve. `None` if its `alg` differs.
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

/// Returns the keys in an anchor's source.
pub(super) fn keys(anchor: &RealityAnchor) -> &[Value] {
    let list = anchor.source.as_ref().and_then(|source| source.0.get("jwks"));
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The status of a snapshot's signature against an anchor's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Signature {
    /// The snapshot has no signature.
    None,
    /// The signature does not name a key of the anchor.
    KeyUnknown,
    /// The signature was not made by the named key.
    Invalid,
    /// The signature was made by the key with this thumbprint.
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
