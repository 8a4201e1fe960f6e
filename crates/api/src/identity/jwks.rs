//! Parses a JWKS: an identity provider's public keys.

use std::collections::{HashMap, HashSet};

use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use authority_crypto::jwk;

/// The most keys that are read; no provider publishes more.
const MOST_KEYS: usize = 100;
/// Bytes of the smallest accepted modulus, 2048 bits (RFC 7518, 3.3).
const SHORTEST_MODULUS: usize = 256;
/// Bytes of the largest accepted modulus: a longer modulus would only make verification slower.
const LONGEST_MODULUS: usize = 1024;
/// Bytes of the largest accepted public exponent.
const LONGEST_EXPONENT: usize = 4;
/// The algorithms of tokens.
pub(super) const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
/// Bytes of a coordinate on P-256, and of a key of Ed25519.
const COORDINATE: usize = 32;

/// A public key for tokens. It verifies one algorithm, which follows from its type: the token's
/// `alg` does not choose how the key is used.
#[derive(Clone)]
pub struct VerifyingKey {
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

/// The usable keys and the revoked key ids of a JWKS.
pub(super) struct Document<K> {
    /// The keys that can be used, by kid.
    pub(super) keys: HashMap<String, K>,
    /// The kids of keys that the document marks as revoked.
    pub(super) revoked: HashSet<String>,
}

/// Parses a JWKS (RFC 7517) and keeps the keys that may verify one of the algorithms. Keys that are
/// unreadable, of another type, for another use, revoked or without a kid are skipped.
///
/// # Errors
/// The document is not a JWKS.
pub(super) fn read(
    document: &[u8],
    algorithms: &[Algorithm],
) -> Result<Document<VerifyingKey>, &'static str> {
    keys(document, |jwk| {
        let (kid, key) = usable(jwk)?;
        algorithms.contains(&key.algorithm).then_some((kid, key))
    })
}

/// Parses the keys that sign documents: `EdDSA`, `ES256`, `ES384` and `RS256`.
///
/// # Errors
/// The document is not a JWKS.
pub(super) fn read_signing(document: &[u8]) -> Result<Document<Value>, &'static str> {
    keys(document, signing)
}

fn keys<K>(
    document: &[u8],
    usable: impl Fn(&Value) -> Option<(String, K)>,
) -> Result<Document<K>, &'static str> {
    let document: Value = serde_json::from_slice(document).map_err(|_| "it is not JSON")?;
    let keys = document.get("keys").and_then(Value::as_array).ok_or("it has no `keys`")?;
    if keys.len() > MOST_KEYS {
        return Err("it has over 100 keys");
    }
    let mut set = HashMap::new();
    for (kid, key) in keys.iter().filter_map(usable) {
        // If two keys have the same kid, only the first counts.
        set.entry(kid).or_insert(key);
    }
    let kid = |jwk: &Value| jwk.get("kid").and_then(Value::as_str).map(str::to_owned);
    let revoked = keys.iter().filter(|jwk| is_revoked(jwk)).filter_map(kid).collect();
    Ok(Document { keys: set, revoked })
}

fn is_revoked(jwk: &Value) -> bool {
    jwk.get("revoked").is_some() || jwk.get("revoked_at").is_some()
}

fn signing(jwk: &Value) -> Option<(String, Value)> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str);
    let kid = word("kid").filter(|kid| !kid.is_empty() && !is_revoked(jwk))?.to_owned();
    is_for_signatures(jwk).then_some(())?;
    let implied = match (word("kty"), word("crv")) {
        (Some("OKP"), Some("Ed25519")) => Some("EdDSA"),
        (Some("EC"), Some("P-256")) => Some("ES256"),
        (Some("EC"), Some("P-384")) => Some("ES384"),
        _ => None,
    };
    let alg = word("alg").or(implied)?.to_owned();
    let mut jwk = jwk.clone();
    jwk["alg"] = alg.into();
    Some((kid, jwk))
}

/// Whether a key may verify signatures (RFC 7517, 4.2 and 4.3).
///
/// A key declared for another purpose, or in an unexpected form, isn't used.
fn is_for_signatures(jwk: &Value) -> bool {
    let verifies = |operations: &Value| {
        operations.as_array().is_some_and(|all| all.iter().any(|one| one == "verify"))
    };
    jwk.get("use").is_none_or(|word| word == "sig") && jwk.get("key_ops").is_none_or(verifies)
}

fn usable(jwk: &Value) -> Option<(String, VerifyingKey)> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str);
    if is_revoked(jwk) || !is_for_signatures(jwk) {
        return None;
    }
    let kid = word("kid").filter(|kid| !kid.is_empty())?.to_owned();
    let (name, algorithm, key) = match (word("kty")?, word("crv")) {
        ("RSA", _) => ("RS256", Algorithm::RS256, rsa_key(jwk)?),
        ("EC", Some("P-256")) => ("ES256", Algorithm::ES256, p256_key(jwk)?),
        ("OKP", Some("Ed25519")) => ("EdDSA", Algorithm::EdDSA, ed25519_key(jwk)?),
        _ => return None,
    };
    let is_of_alg = jwk.get("alg").is_none_or(|alg| alg == name);
    is_of_alg.then_some((kid, VerifyingKey { algorithm, key }))
}

fn rsa_key(jwk: &Value) -> Option<DecodingKey> {
    let (modulus, exponent) = (jwk::integer(jwk, "n").ok()?, jwk::integer(jwk, "e").ok()?);
    is_rsa_key(&modulus, &exponent)
        .then(|| DecodingKey::from_rsa_raw_components(&modulus, &exponent))
}

/// A key on P-256 as an uncompressed point (SEC 1, 2.3.3). The verification refuses points that are
/// not on the curve.
fn p256_key(jwk: &Value) -> Option<DecodingKey> {
    let point = [&[4][..], &coordinate(jwk, "x")?, &coordinate(jwk, "y")?].concat();
    Some(DecodingKey::from_ec_der(&point))
}

fn ed25519_key(jwk: &Value) -> Option<DecodingKey> {
    Some(DecodingKey::from_ed_der(&coordinate(jwk, "x")?))
}

fn coordinate(jwk: &Value, member: &str) -> Option<Vec<u8>> {
    let bytes = jwk::bytes(jwk, member).ok()?;
    (bytes.len() == COORDINATE).then_some(bytes)
}

/// Whether the modulus and the exponent form a key that can verify signatures.
fn is_rsa_key(modulus: &[u8], exponent: &[u8]) -> bool {
    let is_large =
        modulus.len() > SHORTEST_MODULUS || modulus.len() == SHORTEST_MODULUS && modulus[0] >= 0x80;
    let is_odd = exponent.last().is_some_and(|last| last % 2 == 1);
    is_large
        && modulus.len() <= LONGEST_MODULUS
        && is_odd
        && exponent != [1]
        && exponent.len() <= LONGEST_EXPONENT
}
