//! Who may sign certifications besides this service.

use std::sync::Arc;

use authority_api::identity::{Error as IdentityError, JwksClient, JwksSettings};
use authority_core::clock::Clock;
use authority_crypto::verify_with_jwk;
use serde_json::Value;

/// The keys of the trusted issuers. Cheap to clone.
#[derive(Clone)]
pub struct Issuers(Arc<[JwksClient<Value>]>);

/// Why a signature does not count.
pub(super) enum Unverified {
    /// No trusted issuer has a key with this kid.
    UnknownKid,
    /// It is not this key's signature over the text.
    Wrong,
    /// The keys cannot be read at present.
    Unavailable,
}

impl Issuers {
    /// Those whose JWKS are at these URLs.
    ///
    /// # Errors
    /// One is no `https` URL; the text names it.
    pub fn new(urls: &[String], clock: &Clock) -> Result<Self, String> {
        let client =
            |url: &String| JwksClient::of_signatures(JwksSettings::new(url.clone()), clock.clone());
        Ok(Self(urls.iter().map(client).collect::<Result<_, _>>()?))
    }

    /// Verifies with the key of that kid. Kids are not secret: if two issuers have the same, each key is tried.
    pub(super) async fn verify(
        &self,
        kid: &str,
        text: &str,
        signature: &[u8],
    ) -> Result<(), Unverified> {
        let mut fault = Unverified::UnknownKid;
        for issuer in &*self.0 {
            match issuer.key(kid).await {
                Ok(key) if verify_with_jwk(&key, text.as_bytes(), signature).is_ok() => {
                    return Ok(());
                }
                Ok(_) => fault = Unverified::Wrong,
                Err(IdentityError::Unavailable) if !matches!(fault, Unverified::Wrong) => {
                    fault = Unverified::Unavailable;
                }
                Err(_) => {}
            }
        }
        Err(fault)
    }
}
