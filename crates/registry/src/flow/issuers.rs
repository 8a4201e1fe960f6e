//! The issuers, besides this service, that may sign certifications.

use std::sync::Arc;

use authority_api::identity::{Error as IdentityError, JwksClient, JwksSettings};
use authority_crypto::verify_with_jwk;
use authority_process::clock::Clock;
use serde_json::Value;

/// The keys of the trusted issuers. Cheap to clone.
#[derive(Clone)]
pub struct Issuers(Arc<[JwksClient<Value>]>);

/// The reason a signature is not accepted.
pub(crate) enum Unverified {
    /// No trusted issuer has a key with this `kid`.
    UnknownKid,
    /// The signature over the text was not made by this key.
    Wrong,
    /// The keys can't be read now.
    Unavailable,
}

impl Issuers {
    /// Creates the issuers with JWKS at these URLs.
    ///
    /// # Errors
    /// A URL is not an `https` URL. The text contains the URL.
    pub fn new(urls: &[String], clock: &Clock) -> Result<Self, String> {
        let client =
            |url: &String| JwksClient::of_signatures(JwksSettings::new(url.clone()), clock.clone());
        Ok(Self(urls.iter().map(client).collect::<Result<_, _>>()?))
    }

    /// Verifies the signature with the key of that `kid`. A `kid` is not unique: if two issuers use
    /// the same `kid`, each key is tried.
    pub(crate) async fn verify(
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
