//! The public halves of the inventory's keys, as published in the JWKS.

use authority_crypto::{Algorithm, verify};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::error::Error;

/// The stage of a key in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The key signs, or is published and will sign after its `rotating` predecessor.
    Active,
    /// The key signs until its active successor replaces it.
    Rotating,
    /// The key no longer signs. Its signatures remain valid.
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

/// The public half of a key in the inventory.
#[derive(Clone, Debug)]
pub struct PublicKey {
    pub kid: String,
    pub algorithm: Algorithm,
    pub purpose: String,
    /// Whether the service created the key for its own signatures.
    pub managed: bool,
    pub status: Status,
    pub revoked_at: Option<DateTime<Utc>>,
    pub jwk: Value,
}

impl PublicKey {
    /// Returns the key's entry in a JWKS (RFC 7517).
    ///
    /// Only the fields of the public key are copied. The entry therefore never contains private
    /// data.
    pub fn published(&self) -> Value {
        let mut shown = json!({"kid": self.kid, "use": "sig"});
        for member in ["kty", "crv", "x", "y", "n", "e"] {
            if let Some(value) = self.jwk.get(member) {
                shown[member] = value.clone();
            }
        }
        // The specification requires a P-256 key for `EdDSA`. Publishing it as EdDSA would be
        // wrong.
        if self.algorithm != Algorithm::EdDsa || self.jwk["kty"] == "OKP" {
            shown["alg"] = json!(self.algorithm.name());
        }
        if let Some(at) = self.revoked_at {
            shown["revoked_at"] = json!(at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        }
        shown
    }

    /// Checks whether `signature` is a signature by this key over `bytes`.
    ///
    /// Any [`Self::status`] is accepted: signatures of retired and revoked keys can also be
    /// verified.
    pub fn verify(&self, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
        Ok(verify(&self.jwk, self.algorithm, bytes, signature)?)
    }
}
