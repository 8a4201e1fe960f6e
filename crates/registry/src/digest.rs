//! The digest of a record: SHA-256 of its JSON in RFC 8785 form.

use authority_model::rest;
use prost::Message;
use serde_json::{Map, Value};

use super::Error;
use authority_core::store;
use authority_crypto::sha256;

/// Of the message that `shape` names, without some of its members.
pub(super) fn digest(
    shape: &str,
    message: &impl Message,
    without: &[&str],
) -> Result<[u8; 32], Error> {
    let broken = |what: &str| Error::Store(store::Error::Internal(what.to_owned()));
    let shape = rest::shape(shape).ok_or_else(|| broken("a message has no shape"))?;
    let json = gateway_rest::to_json(shape, &message.encode_to_vec());
    let json = json.map_err(|fault| broken(&fault.message))?;
    let mut members: Map<String, Value> =
        serde_json::from_slice(&json).map_err(|error| broken(&error.to_string()))?;
    members.retain(|member, _| !without.contains(&member.as_str()));
    let text = serde_json_canonicalizer::to_vec(&members);
    Ok(sha256(&text.map_err(|error| broken(&error.to_string()))?))
}
