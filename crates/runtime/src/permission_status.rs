//! Checks whether a permission is still valid. Used by streams, and before an allow is repeated.

use std::sync::Arc;

use authority_ids::TenantId;
use chrono::{DateTime, Utc};

use authority_api::error::{ApiError, ErrorCode};
use authority_decision::{
    Draft, Facts, PermissionStatus, Reason, Request, StopCondition,
    records::Approval,
    verdict::{AuthorityKind, AuthorityUsed},
};
use authority_evidence::sealed;
use authority_graph::TenantHandle;

/// A permitted request and the authority that permitted it. The permission ends with this
/// authority, even if another authority would permit the request now.
pub(super) struct Permitted {
    /// The request, with the delegation that was used.
    pub(super) request: Request,
    pub(super) used: AuthorityUsed,
    /// The approval that the decision used, with the acts on it that counted.
    pub(super) approval: Option<Approval>,
}

impl Permitted {
    pub(super) fn tenant_id(&self) -> &TenantId {
        self.request.tenant()
    }

    /// Returns the stop condition for the reason why the permission has ended.
    pub(super) fn condition(&self, reason: Reason) -> StopCondition {
        StopCondition::of(reason, self.used.kind)
    }
}

/// Returns the current status of a permission and the revision at which it was read. An unknown
/// tenant has no permissions. Uses memory only.
pub(super) fn permission_status(
    handle: Option<&TenantHandle>,
    permitted: &Permitted,
    at: DateTime<Utc>,
) -> (i64, PermissionStatus) {
    let Permitted { request, used, approval } = permitted;
    let gathered = handle.map(|handle| handle.read().gather(request)).unwrap_or_default();
    let revision = gathered.revision;
    let facts = Facts { approval: approval.clone(), ..Facts::new(Arc::new(gathered)) };
    (revision, PermissionStatus::judge(request, used, &facts, at))
}

/// Returns the request of a permitted decision, with the authority from its record and the approval
/// from its facts.
///
/// # Errors
/// The record's authority or the approval is unreadable. Its stop conditions are then unknown.
pub(super) fn permitted(
    request: Request,
    record: &[u8],
    facts: &[u8],
) -> Result<Permitted, ApiError> {
    let (used, approval) = (sealed::authority(record)?, sealed::approval(facts)?);
    let mut draft = Draft { explain: false, ..request.into_draft() };
    if used.kind == AuthorityKind::Delegation {
        draft.delegation_id = Some(used.id.as_str().into());
    }
    let request = Request::new(draft).map_err(|_| ApiError::plain(ErrorCode::Internal))?;
    Ok(Permitted { request, used, approval })
}
