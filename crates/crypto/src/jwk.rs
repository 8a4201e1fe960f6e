//! Public keys as JSON (RFC 7517), their thumbprints (RFC 7638) and their kids.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use super::{Error, sha256};

pub fn ed25519(public: &[u8]) -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(public)})
}

/// Returns the JWK of `point`, which is in the uncompressed form of SEC 1: 4, x, y.
pub fn elliptic(curve: &str, point: &[u8]) -> Result<Value, Error> {
    let [4, coordinates @ ..] = point else {
        return Err(Error::BadKey("not an uncompressed point"));
    };
    let (x, y) = coordinates.split_at(coordinates.len() / 2);
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    Ok(json!({"kty": "EC", "crv": curve, "x": x, "y": y}))
}

pub fn rsa(modulus: &[u8], exponent: &[u8]) -> Value {
    let (n, e) = (URL_SAFE_NO_PAD.encode(modulus), URL_SAFE_NO_PAD.encode(exponent));
    json!({"kty": "RSA", "n": n, "e": e})
}

/// Decodes a base64url field.
pub fn bytes(jwk: &Value, member: &str) -> Result<Vec<u8>, Error> {
    let text =
        jwk.get(member).and_then(Value::as_str).ok_or(Error::BadKey("a field is missing"))?;
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Error::BadKey("a field is not base64url"))
}

/// Decodes a base64url number and strips leading zeros.
///
/// RFC 7518, 2 forbids leading zeros, but some issuers write them.
pub fn integer(jwk: &Value, member: &str) -> Result<Vec<u8>, Error> {
    let bytes = bytes(jwk, member)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Ok(bytes[zeros..].to_vec())
}

/// Returns the SHA-256 of the key's required fields (RFC 7638, RFC 8037 for OKP).
pub fn thumbprint(jwk: &Value) -> Result<[u8; 32], Error> {
    let members: &[&str] = match jwk.get("kty").and_then(Value::as_str) {
        Some("OKP") => &["crv", "kty", "x"],
        Some("EC") => &["crv", "kty", "x", "y"],
        Some("RSA") => &["e", "kty", "n"],
        _ => return Err(Error::BadKey("its `kty` must be OKP, EC or RSA")),
    };
    let mut made = Map::new();
    for member in members {
        let text = jwk.get(member).filter(|value| value.is_string());
        let text = text.ok_or(Error::BadKey("a field is missing"))?;
        made.insert((*member).to_owned(), text.clone());
    }
    let canonical = serde_json_canonicalizer::to_vec(&Value::Object(made))
        .map_err(|_| Error::BadKey("it is not JSON"))?;
    Ok(sha256(&canonical))
}

/// Returns `svc-<purpose>-<year>-<first 8 hex of the thumbprint>`.
pub fn kid(purpose: &str, year: i32, jwk: &Value) -> Result<String, Error> {
    let [a, b, c, d, ..] = thumbprint(jwk)?;
    Ok(format!("svc-{purpose}-{year}-{}", hex::encode([a, b, c, d])))
}
