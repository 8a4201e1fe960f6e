//! The outcome of a decision.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use super::needed::ApprovalsNeeded;
use super::{
    facts::CounterKey,
    levels::{Decision, RuntimeEffect},
    moment,
    reality::RealitySource,
    reason::Reason,
    trace_step::StageTrace,
};

/// The outcome of one decision. All but `claims`, `advice`, `held_by`, `held_by_reality` and `trace` go on the
/// record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    pub reason_code: Reason,
    /// `reason_code` first, then the others of equal strength.
    pub reasons: Vec<Reason>,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    /// If held for people: how many, and which roles must be among them.
    pub approvals_needed: Option<ApprovalsNeeded>,
    /// The authority under which it is permitted or held.
    pub authority: Option<AuthorityUsed>,
    /// The only tool that it is permitted or held for; `None` for any that performs the action.
    pub tool_id: Option<String>,
    /// What an allow spends: committed in one transaction with its record.
    pub claims: Claims,
    /// If permitted: the action must begin before this time.
    #[serde(with = "moment::option")]
    pub valid_until: Option<DateTime<Utc>>,
    /// For people: the `@advice` of the policies that decided.
    pub advice: Vec<String>,
    /// The policy statements that hold it, in their order; empty if it is denied.
    #[serde(default)]
    pub held_by: Vec<HeldBy>,
    /// What of reality holds it, or would without the approval that it spends: in order of ids, anchors first; empty
    /// if it is denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by_reality: Vec<HeldByReality>,
    /// With `explain`: every stage.
    pub trace: Option<Vec<StageTrace>>,
}

/// A statement of a policy that holds an action for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    pub policy_id: String,
    /// The statement's `@id`, or the policy's id.
    pub statement: String,
    /// Its `@advice`.
    pub advice: Option<String>,
}

/// An anchor's finding, or a drift event, that holds an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldByReality {
    pub source: RealitySource,
    /// The anchor's id, or the drift event's.
    pub id: String,
    /// The kind of drift.
    pub drift_type: String,
    pub effect: RuntimeEffect,
    /// When it began; an approval that people gave before does not review it.
    #[serde(with = "moment")]
    pub since: DateTime<Utc>,
}

/// The authority that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityUsed {
    pub kind: AuthorityKind,
    pub id: String,
    /// The delegations of its chain, itself first; empty for other authorities.
    pub chain: Vec<String>,
}

/// The kind of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorityKind {
    Delegation,
    Uses,
    ActsIn,
}

impl AuthorityKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delegation => "delegation",
            Self::Uses => "uses",
            Self::ActsIn => "acts_in",
        }
    }
}

/// What an allow spends. Empty on every other decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The approval to change from approved to used.
    pub approval_id: Option<String>,
    pub counters: Vec<CounterClaim>,
}

impl Claims {
    pub fn is_empty(&self) -> bool {
        self.approval_id.is_none() && self.counters.is_empty()
    }
}

/// Add `add` to the counter unless it would exceed `limit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterClaim {
    pub key: CounterKey,
    pub add: i64,
    pub limit: i64,
}
