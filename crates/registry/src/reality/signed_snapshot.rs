//! What the source of a snapshot signs: one text, for those who sign and for those who verify.

use authority_crypto::sha256;
use authority_model::proto::reality::RealitySnapshot;
use serde::Serialize;
use serde_json::{Map, Value};

/// `kind` of what is signed.
const KIND: &str = "svc.reality.snapshot.v1";

/// The text that is signed: RFC 8785, as a read returns the members, without those that are null.
/// `observations_hash` must be set: the [`digest`] of the observations if there are any.
///
/// # Errors
/// None for a snapshot; serde's signature has one.
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

/// `sha256:` and the hex SHA-256 of a value's RFC 8785 form.
///
/// # Errors
/// The value cannot be written as JSON.
pub fn digest(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json_canonicalizer::to_vec(value)?;
    Ok(format!("sha256:{}", hex::encode(sha256(&text))))
}
