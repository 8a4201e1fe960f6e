//! Signs texts and documents: acts of people, reports of agents, replays and archive manifests.

use authority_crypto::Signer;
use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Value, json};

use super::Error;

/// A signed text.
pub struct SignedText {
    /// The text in RFC 8785 form. The signature is over these bytes.
    pub record: String,
    pub kid: Arc<str>,
    pub signature: [u8; 64],
}

pub(super) fn sign(text: &impl Serialize, signer: &Signer) -> Result<SignedText, Error> {
    let record = serde_json_canonicalizer::to_string(text)?;
    let signature = signer.sign(record.as_bytes());
    Ok(SignedText { record, kid: signer.shared_kid(), signature })
}

/// Returns the document in RFC 8785 form, with a `signature` over the rest of the document.
pub(super) fn signed(mut document: Value, signer: &Signer) -> Result<String, Error> {
    let bytes = serde_json_canonicalizer::to_vec(&document)?;
    document["signature"] = json!({
        "alg": "Ed25519",
        "canonicalization": "RFC8785",
        "kid": signer.kid(),
        "value": STANDARD.encode(signer.sign(&bytes)),
    });
    Ok(serde_json_canonicalizer::to_string(&document)?)
}
