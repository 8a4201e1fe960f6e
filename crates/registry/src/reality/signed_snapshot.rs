//! The text that a snapshot's source signs, for signers and verifiers.

use authority_crypto::sha256;
use authority_model::proto::reality::RealitySnapshot;
use serde::Serialize;
use serde_json::{Map, Value};

/// `kind` in the signed text.
const KIND: &str = "svc.reality.snapshot.v1";

/// Returns the text to sign, in RFC 8785 form. Its fields have the values that the API returns for
/// the snapshot. Fields without a value are left out. If the snapshot has observations, set
/// `observations_hash` to their [`digest`] before the call.
///
/// # Errors
/// Never in practice, because a snapshot can always be serialised. The return type is serde's.
pub fn text(snapshot: &RealitySnapshot) -> serde_json::Result<Vec<u8>> {
    let members = [
        ("kind", Some(KIND.to_owned())),
        ("tenant_id", snapshot.tenant_id.clone()),
        ("anchor_id", Some(snapshot.anchor_id.clone())),
        ("sampled_at", snapshot.sampled_at.map(|at| at.to_string())),
        ("valid_until", snapshot.valid_until.map(|at| at.to_string())),
        ("source_version", snapshot.source_version.clone()),
        ("content_hash", Some(snapshot.content_hash.clone())),
        ("observations_hash", snapshot.observations_hash.clone()),
    ];
    let members: Map<String, Value> = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))))
        .collect();
    serde_json_canonicalizer::to_vec(&members)
}

/// Returns `sha256:` followed by the SHA-256 of a value's RFC 8785 form, in hex.
///
/// # Errors
/// The value can't be written as JSON.
pub fn digest(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json_canonicalizer::to_vec(value)?;
    Ok(format!("sha256:{}", hex::encode(sha256(&text))))
}
