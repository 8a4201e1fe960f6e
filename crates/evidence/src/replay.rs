//! The replay proof `svc.replay.proof.v1`: the signed result of deciding again, field by field.

use authority_crypto::Signer;
use authority_ids::{DecisionId, EvidenceId, RecordId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Error, signed::signed};
use authority_decision::moment;

/// `kind` of a replay proof.
pub const REPLAY_KIND: &str = "svc.replay.proof.v1";

/// The basis of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The sealed facts, at the sealed time. The bytes and the id must be the same.
    HistoricalStateSnapshot,
    /// The tenant's current authority, at the current time.
    CurrentState,
    /// The sealed facts with another version of a policy.
    PolicyPin,
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Match,
    Mismatch,
    /// The decision could not be made again; `detail` has the reason.
    Indeterminate,
}

impl Outcome {
    pub fn word(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Mismatch => "mismatch",
            Self::Indeterminate => "indeterminate",
        }
    }
}

/// The policy version that replaced the sealed one.
#[derive(Clone, Debug, Serialize)]
pub struct PinnedPolicy {
    pub id: String,
    pub sha256: String,
    pub version: i32,
}

/// A field with different values in the sealed record and in the recomputed one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The field's path, for example `verdict.decision`.
    pub member: String,
    pub recomputed: Value,
    pub sealed: Value,
}

/// The content of a proof.
pub struct Replay<'a> {
    pub id: &'a RecordId,
    pub decision_id: &'a DecisionId,
    pub evidence_id: &'a EvidenceId,
    pub mode: Mode,
    pub semantics: &'a str,
    pub policy: Option<PinnedPolicy>,
    pub outcome: Outcome,
    pub recomputed_decision_id: Option<&'a str>,
    pub diff: &'a [Difference],
    pub detail: Option<&'a str>,
    pub replayed_at: DateTime<Utc>,
    /// The service's public URL.
    pub issuer: &'a str,
}

/// Returns the proof's text in RFC 8785 form. Its `signature` signs all other fields.
///
/// # Errors
/// A part does not serialise.
pub fn proof(replay: &Replay<'_>, signer: &Signer) -> Result<String, Error> {
    let proof = json!({
        "decision_id": replay.decision_id,
        "detail": replay.detail,
        "diff": replay.diff,
        "evidence_id": replay.evidence_id,
        "id": replay.id,
        "issuer": replay.issuer,
        "kind": REPLAY_KIND,
        "mode": replay.mode,
        "policy": replay.policy,
        "recomputed_decision_id": replay.recomputed_decision_id,
        "replayed_at": moment::text(replay.replayed_at),
        "result": replay.outcome,
        "semantics": replay.semantics,
    });
    signed(proof, signer)
}

/// Returns every field in which two records differ.
pub fn differences(sealed: &Value, recomputed: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", sealed, recomputed, &mut found);
    found
}

fn compare(member: &str, sealed: &Value, recomputed: &Value, found: &mut Vec<Difference>) {
    if let (Value::Object(one), Value::Object(other)) = (sealed, recomputed) {
        let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let below = if member.is_empty() { name.clone() } else { format!("{member}.{name}") };
            compare(&below, &sealed[name], &recomputed[name], found);
        }
    } else if sealed != recomputed {
        found.push(Difference {
            member: member.to_owned(),
            recomputed: recomputed.clone(),
            sealed: sealed.clone(),
        });
    }
}
