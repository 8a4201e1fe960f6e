//! The bytes that signatures and digests are computed from.

use authority_crypto::sha256;
use serde_json::Value;

use super::fault::Fault;
use crate::digest_text;

/// Returns the value in RFC 8785 form.
pub(super) fn canonical(value: &Value) -> Result<Vec<u8>, Fault> {
    let written = serde_json_canonicalizer::to_vec(value);
    written.map_err(|why| Fault::Unreadable(why.to_string()))
}

pub(super) fn canonical_without(value: &Value, member: &str) -> Result<Vec<u8>, Fault> {
    let mut rest = value.clone();
    if let Value::Object(members) = &mut rest {
        members.remove(member);
    }
    canonical(&rest)
}

/// Returns the text form of the bytes' SHA-256.
pub(super) fn digest(bytes: &[u8]) -> String {
    digest_text(&sha256(bytes))
}
