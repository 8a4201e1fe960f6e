//! The evidence pack `svc.evidence.pack.v1`: a signed record with its place in a transparency log.
//!
//! The pack without the field `log` is the leaf in the log. The structs declare their fields in the
//! order of RFC 8785, as in `record.rs`.

use authority_crypto::sha256;
use authority_ids::{DecisionId, EvidenceId};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Error, digest_text, log::tree};
use authority_decision::moment;

/// `kind` of a pack.
pub const PACK_KIND: &str = "svc.evidence.pack.v1";

/// Returns the id of a decision's evidence. It contains the same hash as the decision's id.
pub fn evidence_id(decision_id: &str) -> String {
    let hash = decision_id.strip_prefix(DecisionId::PREFIX).unwrap_or_default();
    format!("{}{hash}", EvidenceId::PREFIX)
}

/// Returns the decision's id for an evidence id or a decision id.
pub fn decision_of(id: &str) -> Option<DecisionId> {
    let of_evidence = || Some(EvidenceId::parse(id).ok()?.decision());
    DecisionId::parse(id).ok().or_else(of_evidence)
}

/// A signed record to be sealed.
pub struct Sealing<'a> {
    pub decision_id: &'a str,
    /// In RFC 8785 form.
    pub record: &'a [u8],
    pub kid: &'a str,
    pub signature: &'a [u8],
    pub sealed_at: DateTime<Utc>,
    /// The service's public URL.
    pub issuer: &'a str,
}

#[derive(Serialize, Deserialize)]
struct Pack<'a> {
    decision_id: &'a str,
    id: String,
    issuer: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<LogPlace>,
    #[serde(borrow)]
    record: &'a RawValue,
    record_digest: String,
    sealed_at: String,
    signature: Signature<'a>,
}

#[derive(Serialize, Deserialize)]
struct Signature<'a> {
    alg: &'a str,
    canonicalization: &'a str,
    kid: &'a str,
    value: String,
}

/// The pack's log, its index in the log, and the proof.
#[derive(Serialize, Deserialize)]
pub struct LogPlace {
    pub index: u64,
    pub leaf_hash: String,
    pub origin: String,
    /// c2sp.org/tlog-proof@v1.
    pub proof: String,
}

/// Returns a record's signature as a separate document in RFC 8785 form.
///
/// # Errors
/// This does not happen: all fields are strings.
pub fn signature(kid: &str, signature: &[u8]) -> Result<String, Error> {
    Ok(serde_json::to_string(&Signature::of(kid, signature))?)
}

impl<'a> Signature<'a> {
    fn of(kid: &'a str, signature: &[u8]) -> Self {
        let value = STANDARD.encode(signature);
        Self { alg: "Ed25519", canonicalization: "RFC8785", kid, value }
    }
}

/// Returns the pack without its place in a log: the leaf.
///
/// # Errors
/// The record is not JSON, which is a bug.
pub fn leaf(sealing: &Sealing<'_>) -> Result<Vec<u8>, Error> {
    let pack = Pack {
        decision_id: sealing.decision_id,
        id: evidence_id(sealing.decision_id),
        issuer: sealing.issuer,
        kind: PACK_KIND,
        log: None,
        record: serde_json::from_slice(sealing.record)?,
        record_digest: digest_text(&sha256(sealing.record)),
        sealed_at: moment::text(sealing.sealed_at),
        signature: Signature::of(sealing.kid, sealing.signature),
    };
    Ok(serde_json::to_vec(&pack)?)
}

/// Returns the whole pack of a stored leaf and its place in a log.
///
/// # Errors
/// The leaf is not the output of [`leaf`].
pub fn stored(leaf: &[u8], origin: String, index: i64, proof: String) -> Result<String, Error> {
    let index = u64::try_from(index).unwrap_or_default();
    let leaf_hash = digest_text(&tree::leaf_hash(leaf));
    whole(leaf, LogPlace { index, leaf_hash, origin, proof })
}

/// Returns the whole pack in RFC 8785 form.
///
/// # Errors
/// The leaf is not the output of [`leaf`].
pub fn whole(leaf: &[u8], log: LogPlace) -> Result<String, Error> {
    let pack: Pack<'_> = serde_json::from_slice(leaf)?;
    Ok(serde_json::to_string(&Pack { log: Some(log), ..pack })?)
}
