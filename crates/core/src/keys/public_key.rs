//! The public halves of the inventory's keys, as the JWKS publishes them.

use authority_crypto::{Algorithm, verify};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::Error;

/// The stage of a key's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Signs or, while another is `rotating`, is published and will sign next.
    Active,
    /// Signs until its successor, which is active, replaces it.
    Rotating,
    /// No longer signs; its signatures remain valid.
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
    /// Created by the service for its own signatures.
    pub managed: bool,
    pub status: Status,
    pub revoked_at: Option<DateTime<Utc>>,
    pub jwk: Value,
}

impl PublicKey {
    /// The key's entry in a JWKS (RFC 7517). Only the members of the public key are copied, so it
    /// never contains anything private.
    pub fn published(&self) -> Value {
        let mut shown = json!({"kid": self.kid, "use": "sig"});
        for member in ["kty", "crv", "x", "y", "n", "e"] {
            if let Some(value) = self.jwk.get(member) {
                shown[member] = value.clone();
            }
        }
        // The specification has a P-256 key generated for `EdDSA`; publishing it as EdDSA would be
        // false.
        if self.algorithm != Algorithm::EdDsa || self.jwk["kty"] == "OKP" {
            shown["alg"] = json!(self.algorithm.name());
        }
        if let Some(at) = self.revoked_at {
            shown["revoked_at"] = json!(at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        }
        shown
    }

    /// Whether `signature` is this key's over `bytes`, whatever its [`Self::status`]: also for a
    /// retired or revoked key.
    pub fn verify(&self, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
        Ok(verify(&self.jwk, self.algorithm, bytes, signature)?)
    }
}
