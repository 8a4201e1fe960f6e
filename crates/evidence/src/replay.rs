//! The replay proof `svc.replay.proof.v1`: the signed result of deciding again, member by member.

use authority_crypto::Signer;
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
    /// The sealed facts, at the sealed time: bytes and id must be the same.
    HistoricalStateSnapshot,
    /// Present authority, at the present time.
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
    /// It could not be decided again; `detail` says why.
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

/// The policy version that was used instead.
#[derive(Clone, Debug, Serialize)]
pub struct PinnedPolicy {
    pub id: String,
    pub sha256: String,
    pub version: i32,
}

/// A member that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// `verdict.decision`.
    pub member: String,
    pub recomputed: Value,
    pub sealed: Value,
}

/// The content of a proof.
pub struct Replay<'a> {
    pub id: &'a str,
    pub decision_id: &'a str,
    pub evidence_id: &'a str,
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

/// The proof's text, RFC 8785, signed over itself without `signature`.
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

/// Every member in which two records differ.
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
