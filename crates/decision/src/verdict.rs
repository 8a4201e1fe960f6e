//! The outcome of a decision.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use super::needed::ApprovalsNeeded;
use super::{
    budget::Budget,
    facts::CounterKey,
    levels::{Decision, RuntimeEffect},
    moment,
    reality::RealitySource,
    reason::Reason,
    trace_step::StageTrace,
};

/// The outcome of a decision.
///
/// The record contains all fields except `claims`, `advice`, `held_by`, `held_by_reality`,
/// `exceeded_budgets` and `trace`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    pub reason_code: Reason,
    /// `reason_code`, followed by the other reasons of equal strength.
    pub reasons: Vec<Reason>,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    /// If held for people: the number of people, and the roles that must be among them.
    pub approvals_needed: Option<ApprovalsNeeded>,
    /// The authority under which the action is permitted or held.
    pub authority: Option<AuthorityUsed>,
    /// The only tool that the action is permitted or held for; `None` for any tool that performs
    /// it.
    pub tool_id: Option<String>,
    /// The resources that an allow spends. They are committed in one transaction with its record.
    pub claims: Claims,
    /// If permitted: the action must begin before this time.
    #[serde(with = "moment::option")]
    pub valid_until: Option<DateTime<Utc>>,
    /// The `@advice` of the deciding policies, for people.
    pub advice: Vec<String>,
    /// The policy statements that hold the action, in their order. Empty if it is denied.
    #[serde(default)]
    pub held_by: Vec<HeldBy>,
    /// The findings of reality that hold the action, or would hold it without the approval that the
    /// decision spends. They are in order of ids, anchors first. Empty if it is denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by_reality: Vec<HeldByReality>,
    /// The budgets that the request exceeds, if it is denied for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceeded_budgets: Vec<Budget>,
    /// All stages, with `explain`.
    pub trace: Option<Vec<StageTrace>>,
}

/// A policy statement that holds an action for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    pub policy_id: String,
    /// The statement's `@id`, or the policy's id.
    pub statement: String,
    /// The statement's `@advice`.
    pub advice: Option<String>,
}

/// An anchor's finding, or a drift event, that holds an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldByReality {
    pub source: RealitySource,
    /// The id of the anchor or the drift event.
    pub id: String,
    /// The kind of drift.
    pub drift_type: String,
    pub effect: RuntimeEffect,
    /// When the finding or the drift began. An earlier approval does not review it.
    #[serde(with = "moment")]
    pub since: DateTime<Utc>,
}

/// The authority that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityUsed {
    pub kind: AuthorityKind,
    pub id: String,
    /// The delegations of its chain, itself first. Empty for other authorities.
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

/// The resources that an allow spends. Empty on every other decision.
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

/// Adds `add` to the counter unless it would exceed `limit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterClaim {
    pub key: CounterKey,
    pub add: i64,
    pub limit: i64,
}
