//! Checks a record that came with a decision's response, before the caller acts on it.

use serde_json::Value;

use super::{
    canonical::{canonical, digest},
    fault::{Fault, need},
    pack::decision_id,
    read, signed,
    trust::KeySet,
};
use crate::RECORD_KIND;

/// Checks that `record` is the signed record of the decision with this id and digest, and returns
/// it.
///
/// # Errors
/// The record is not this decision's, is not in RFC 8785 form, or no trusted key signed it.
pub fn verify_decided(
    record: &str,
    id: &str,
    record_digest: &str,
    signature: &Value,
    keys: &KeySet,
) -> Result<Value, Fault> {
    let read = read::strict(record.as_bytes())?;
    need(read["kind"] == RECORD_KIND, "record.kind", "is not that of a decision's record")?;
    let bytes = canonical(&read)?;
    need(bytes == record.as_bytes(), "record", "is not in RFC 8785 form")?;
    need(digest(&bytes) == record_digest, "record_digest", "is not the record's")?;
    let made = decision_id(&read, &bytes, "")?;
    need(made.as_str() == id, "decision_id", "is not the record's")?;
    signed::check(signature, "evidence", &bytes, keys, "signature")?;
    Ok(read)
}
