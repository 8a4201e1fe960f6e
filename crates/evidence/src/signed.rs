//! A text with its signature: acts of people and reports of agents.

use authority_crypto::Signer;
use std::sync::Arc;

use serde::Serialize;

use super::Error;

/// A signed text.
pub struct SignedText {
    /// RFC 8785; the signature is over these bytes.
    pub record: String,
    pub kid: Arc<str>,
    pub signature: [u8; 64],
}

pub(super) fn sign(text: &impl Serialize, signer: &Signer) -> Result<SignedText, Error> {
    let record = serde_json_canonicalizer::to_string(text)?;
    let signature = signer.sign(record.as_bytes());
    Ok(SignedText { record, kid: signer.shared_kid(), signature })
}
