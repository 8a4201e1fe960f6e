//! Public keys: what the JWKS shows, and what verifies a signature.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{Algorithm, Error, jwk};

/// Where a key is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Signs or, beside a rotating one, is published and about to.
    Active,
    /// Signs until its successor, which is active, takes over.
    Rotating,
    /// Signs no more; what it signed holds.
    Retired,
    Revoked,
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Active, Self::Rotating, Self::Retired, Self::Revoked];

    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Rotating => "rotating",
            Self::Retired => "retired",
            Self::Revoked => "revoked",
        }
    }

    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

/// The public half of a key of the inventory.
#[derive(Clone, Debug)]
pub struct PublicKey {
    pub kid: String,
    pub algorithm: Algorithm,
    pub purpose: String,
    /// Made by the service for its own signatures.
    pub managed: bool,
    pub status: Status,
    pub revoked_at: Option<DateTime<Utc>>,
    pub jwk: Value,
}

impl PublicKey {
    /// As it stands in a JWKS (RFC 7517): never anything private, since only the members that make
    /// the public key are copied.
    pub fn published(&self) -> Value {
        let mut shown = json!({"kid": self.kid, "use": "sig"});
        for member in ["kty", "crv", "x", "y", "n", "e"] {
            if let Some(value) = self.jwk.get(member) {
                shown[member] = value.clone();
            }
        }
        // The specification has P-256 made for `EdDSA`: to call that EdDSA would be a lie.
        if self.algorithm != Algorithm::EdDsa || self.jwk["kty"] == "OKP" {
            shown["alg"] = json!(self.algorithm.name());
        }
        if let Some(at) = self.revoked_at {
            shown["revoked_at"] = json!(at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        }
        shown
    }

    /// Whether `signature` is this key's over `bytes`. What a retired or revoked key signed holds:
    /// whoever cares looks at [`Self::status`].
    pub fn verify(&self, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
        verify(&self.jwk, self.algorithm, bytes, signature)
    }
}

/// Verifies with a key as a JWKS shows it; one without `alg` verifies nothing.
pub fn verify_with_jwk(jwk: &Value, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
    let algorithm = jwk.get("alg").and_then(Value::as_str).and_then(Algorithm::named);
    let algorithm = algorithm.ok_or(Error::BadKey("its `alg` is absent or unknown"))?;
    verify(jwk, algorithm, bytes, signature)
}

/// Verifies with a bare Ed25519 public key (RFC 8032).
pub fn verify_ed25519(public_key: &[u8; 32], bytes: &[u8], signature: &[u8; 64]) -> bool {
    let key = ParsedPublicKey::new(&ED25519, public_key);
    key.is_ok_and(|key| key.verify_sig(bytes, signature).is_ok())
}

fn verify(jwk: &Value, algorithm: Algorithm, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str).unwrap_or_default();
    let unreadable = Error::BadKey("its members make no public key");
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
                RsaPublicKeyComponents { n: jwk::bytes(jwk, "n")?, e: jwk::bytes(jwk, "e")? };
            return parts
                .verify(&RSA_PKCS1_2048_8192_SHA256, bytes, signature)
                .map_err(|_| Error::BadSignature);
        }
        _ => return Err(Error::BadKey("its kind does not fit its `alg`")),
    };
    key.verify_sig(bytes, signature).map_err(|_| Error::BadSignature)
}

fn point(jwk: &Value) -> Result<Vec<u8>, Error> {
    Ok([&[4][..], &jwk::bytes(jwk, "x")?, &jwk::bytes(jwk, "y")?].concat())
}
