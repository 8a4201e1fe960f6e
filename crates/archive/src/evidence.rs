//! The archived documents of a decision, and their source.

use std::sync::Arc;

use authority_ids::{ApprovalRef, DecisionRef, TenantId};
use futures_util::future::BoxFuture;

/// The evidence of one decision.
pub struct Evidence {
    pub decision_id: DecisionRef,
    /// The approval request, if the decision was held.
    pub approval_id: Option<ApprovalRef>,
    pub pack: String,
    /// `None` if a part of the bundle was erased.
    pub bundle: Option<String>,
    /// The remaining context and facts, if the bundle is missing.
    pub remains: Option<String>,
}

/// A page of a tenant's decisions, in the order of ids.
#[derive(Clone, Debug)]
pub struct Page {
    pub tenant_id: TenantId,
    /// The lower bound, exclusive.
    pub after: String,
    /// The upper bound, exclusive.
    pub before: String,
    pub most: usize,
}

/// Reads the evidence of a page, and seals decisions that are not sealed yet.
///
/// The crate `authority-transparency` provides this function.
pub type ReadEvidence = Arc<
    dyn Fn(Page) -> BoxFuture<'static, Result<Vec<Evidence>, authority_process::worker::Error>>
        + Send
        + Sync,
>;
