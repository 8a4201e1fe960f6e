//! A committed decision, as its response and its approval request are built from it.

use std::sync::Arc;

use authority_ids::DecisionId;
use authority_model::proto::runtime::CitedApproval;
use chrono::{DateTime, Utc};

use super::{recorder::Stale, requester::Requester};
use authority_decision::{Verdict, remedy::Remedy};

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
    pub approval_id: Option<String>,
    /// The approval that is ready for a held question. The question waits for it instead of a new request.
    pub ready_approval_id: Option<String>,
    /// The approval that the request cites.
    pub cited_approval: Option<CitedApproval>,
    /// The approvals of the held question that no longer suffice.
    pub stale: Vec<Stale>,
    pub verify_url: String,
    /// Who requested it, if it is held.
    pub requester: Option<Requester>,
    /// The explanation of a denial, with `explain`. It is returned and not recorded.
    pub smallest_change: Option<Remedy>,
}
