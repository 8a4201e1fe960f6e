//! The public halves of the inventory's keys: what the JWKS shows.

use authority_crypto::{Algorithm, verify};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::Error;

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
        Ok(verify(&self.jwk, self.algorithm, bytes, signature)?)
    }
}
