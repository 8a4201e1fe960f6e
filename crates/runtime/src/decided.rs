//! A signed decision, from which its response and its approval request are built.

use std::sync::Arc;

use authority_ids::{ApprovalRef, DecisionId};
use authority_model::proto::runtime::CitedApproval;
use chrono::{DateTime, Utc};

use super::{
    recorder::{ComparedFact, InsufficientApproval},
    requester::Requester,
};
use authority_decision::{Verdict, remedy::Remedy};

/// A record that is part of the response.
#[derive(Clone)]
pub struct IncludedRecord {
    /// The signed text.
    pub record: String,
    pub context_salt: [u8; 16],
}

/// A committed decision.
#[derive(Clone)]
pub struct Decided {
    pub verdict: Verdict,
    pub decision_id: DecisionId,
    pub record_digest: [u8; 32],
    pub kid: Arc<str>,
    pub signature: [u8; 64],
    pub revision: u32,
    pub evaluated_at: DateTime<Utc>,
    /// The approval request that a held decision waits for.
    pub approval_id: Option<ApprovalRef>,
    /// An approved and unused approval for the held request. The decision refers to this approval
    /// instead of opening a new approval request.
    pub ready_approval_id: Option<ApprovalRef>,
    /// The approval that the request cites.
    pub cited_approval: Option<CitedApproval>,
    /// Earlier approvals of the held request that no longer suffice.
    pub insufficient: Vec<InsufficientApproval>,
    pub verify_url: String,
    /// The values by which a held request is compared with others.
    pub facts: Vec<ComparedFact>,
    /// The requester of a held decision.
    pub requester: Option<Requester>,
    /// The record, if the request sets `include_record`.
    pub included: Option<IncludedRecord>,
    /// The explanation of a denial, if the request sets `explain`. It is returned but not recorded.
    pub smallest_change: Option<Remedy>,
}
