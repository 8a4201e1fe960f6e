//! The secret that an endpoint shares with the service.

use std::fmt;

use authority_crypto::hmac_sha256;
use base64::{Engine, engine::general_purpose::STANDARD};

const PREFIX: &str = "whsec_";

/// A secret of 32 random bytes, shown to receivers as `whsec_` and base64. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// The error for a text that is not a secret. Its message does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret is whsec_ and base64 of 32 bytes")]
pub struct SecretError;

impl Secret {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses the output of [`reveal`](Self::reveal).
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        bytes.try_into().map(Self).map_err(|_| SecretError)
    }

    /// Returns the secret as text. It is shown only once, when the secret is created.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0))
    }

    /// The bytes, to be encrypted for storage.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn code(&self, bytes: &[u8]) -> [u8; 32] {
        hmac_sha256(&self.0, bytes)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret(…)")
    }
}
