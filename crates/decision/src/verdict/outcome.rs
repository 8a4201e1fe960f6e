//! The outcome of a decision.

use authority_ids::{ApprovalRef, EntityRef};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    authority::{limits::CounterClaim, trace_step::StageTrace, used::AuthorityUsed},
    facts::budget::Budget,
    levels::Decision,
    moment,
    reason::Reason,
    rules::{evaluation::HeldBy, needed::ApprovalsNeeded, reality::HeldByReality},
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
    pub tool_id: Option<EntityRef>,
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
    /// The budgets that the request exceeds, if it is denied for exceeding them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceeded_budgets: Vec<Budget>,
    /// All stages, with `explain`.
    pub trace: Option<Vec<StageTrace>>,
}

/// The resources that an allow spends. Empty on every other decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The approval to change from approved to used.
    pub approval_id: Option<ApprovalRef>,
    pub counters: Vec<CounterClaim>,
}

impl Claims {
    pub fn is_empty(&self) -> bool {
        self.approval_id.is_none() && self.counters.is_empty()
    }
}
