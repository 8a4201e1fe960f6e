//! A key of the inventory, decrypted.

use authority_crypto::{Algorithm, Pair, jwk};

use super::{Error, PublicKey, Status};

/// A key of the inventory, decrypted.
pub(super) struct Held {
    pub public: PublicKey,
    /// PKCS #8; only for managed keys that may sign.
    pub private: Option<Vec<u8>>,
}

impl Held {
    pub(super) fn make(
        purpose: &str,
        algorithm: Algorithm,
        pair: Pair,
        year: i32,
    ) -> Result<Self, Error> {
        let public = PublicKey {
            kid: jwk::kid(purpose, year, &pair.public_jwk)?,
            algorithm,
            purpose: purpose.to_owned(),
            managed: true,
            status: Status::Active,
            revoked_at: None,
            jwk: pair.public_jwk,
        };
        Ok(Self { public, private: Some(pair.private) })
    }

    pub(super) fn signs(&self, purpose: &str, status: Status) -> Option<&[u8]> {
        let public = &self.public;
        let may = public.managed && public.status == status && public.purpose == purpose;
        self.private.as_deref().filter(|_| may)
    }
}
