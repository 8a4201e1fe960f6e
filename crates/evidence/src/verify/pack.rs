//! Checks a pack: its record's digest, id and signature, and its place in the log.

use authority_crypto::sha256;
use authority_ids::{DecisionId, EvidenceId};
use chrono::DateTime;
use serde_json::Value;

use super::{
    canonical::{canonical, digest},
    fault::{Fault, need},
    log, signed,
    trust::{KeySet, LogTrust},
};

/// Checks a pack. `at` is the pack's path with a dot, or empty.
pub(super) fn check(
    pack: &Value,
    keys: &KeySet,
    trusted: LogTrust<'_>,
    at: &str,
) -> Result<(), Fault> {
    let record = canonical(&pack["record"])?;
    let text = |member: &str| pack[member].as_str().unwrap_or_default();
    let id = decision_id(&pack["record"], &record, at)?;
    let is = |member: &str, wanted: String| {
        need(text(member) == wanted, &format!("{at}{member}"), "is not the record's")
    };
    is("record_digest", digest(&record))?;
    is("decision_id", String::from(&id))?;
    is("id", EvidenceId::of(&id).into())?;
    signed::check(&pack["signature"], "evidence", &record, keys, &format!("{at}signature"))?;
    log::check(pack, trusted, &format!("{at}log"))
}

/// Computes the id of a decision from its record. `bytes` is the record in RFC 8785 form, and `at`
/// is the path of the record's parent with a dot, or empty.
pub(super) fn decision_id(record: &Value, bytes: &[u8], at: &str) -> Result<DecisionId, Fault> {
    let moment = record["evaluated_at"].as_str().and_then(milliseconds);
    let path = format!("{at}record.evaluated_at");
    need(moment.is_some(), &path, "must be a time since 1970, in UTC with Z")?;
    Ok(DecisionId::new(moment.unwrap_or_default(), &sha256(bytes)))
}

/// Parses a time into whole milliseconds since 1970.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let plain = text.strip_suffix('Z')?;
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    // Leap seconds and separators other than `T` are refused.
    let strict =
        whole.len() == 19 && whole.as_bytes().get(10) == Some(&b'T') && !whole.ends_with(":60");
    let at = DateTime::parse_from_rfc3339(text).ok();
    let at = at.filter(|_| strict && digits && fraction.len() <= 9)?;
    u64::try_from(at.timestamp_millis()).ok()
}
