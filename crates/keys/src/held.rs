//! The inventory's keys in memory.

use authority_crypto::{Algorithm, Pair, jwk};
use chrono::{DateTime, Datelike, Utc};

use super::{
    error::Error,
    public_key::{PublicKey, Status},
};

/// A key of the inventory, decrypted.
pub(super) struct InventoryKey {
    pub public: PublicKey,
    /// The private key as PKCS #8. Present only for managed keys that may sign.
    pub private: Option<Vec<u8>>,
    /// When the key was created. It has been published since then.
    pub created_at: DateTime<Utc>,
}

impl InventoryKey {
    pub(super) fn make(
        purpose: &str,
        algorithm: Algorithm,
        pair: Pair,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let public = PublicKey {
            kid: jwk::kid(purpose, now.year(), &pair.public_jwk)?,
            algorithm,
            purpose: purpose.to_owned(),
            managed: true,
            status: Status::Active,
            revoked_at: None,
            jwk: pair.public_jwk,
        };
        Ok(Self { public, private: Some(pair.private), created_at: now })
    }

    pub(super) fn signs(&self, purpose: &str, status: Status) -> Option<&[u8]> {
        let may = self.is_for(purpose) && self.public.status == status;
        self.private.as_deref().filter(|_| may)
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.public.managed && self.public.purpose == purpose
    }
}
