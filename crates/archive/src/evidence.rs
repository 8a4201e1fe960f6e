//! What is archived of a decision, and where it comes from.

use std::sync::Arc;

use authority_ids::TenantId;
use futures_util::future::BoxFuture;

/// A decision's evidence.
pub struct Evidence {
    pub decision_id: String,
    /// The approval request that a held decision waited for.
    pub approval_id: Option<String>,
    pub pack: String,
    /// `None` if a part was erased.
    pub bundle: Option<String>,
    /// What is left of context and facts where there is no bundle.
    pub remains: Option<String>,
}

/// A page of a tenant's decisions, in the order of ids.
#[derive(Clone, Debug)]
pub struct Page {
    pub tenant_id: TenantId,
    /// Exclusive.
    pub after: String,
    /// Exclusive.
    pub before: String,
    pub most: usize,
}

/// Reads the evidence of a page, and seals what is not sealed yet. Whoever keeps the log does that.
pub type ReadEvidence = Arc<
    dyn Fn(Page) -> BoxFuture<'static, Result<Vec<Evidence>, authority_core::worker::Error>>
        + Send
        + Sync,
>;
