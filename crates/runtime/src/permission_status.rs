//! Whether a permission is still in force: checked before an allow is repeated, and by streams.

use std::sync::Arc;

use authority_ids::TenantId;
use chrono::{DateTime, Utc};

use authority_api::error::{ApiError, ErrorCode};
use authority_core::graph::TenantHandle;
use authority_decision::{
    Draft, Facts, PermissionStatus, Reason, Request, StopCondition,
    records::Approval,
    verdict::{AuthorityKind, AuthorityUsed},
};
use authority_evidence::sealed;

/// A permitted request and the authority that permitted it; it does not count that another
/// authority would permit it now.
pub(super) struct Permitted {
    /// The request, with the delegation that was used.
    pub(super) request: Request,
    pub(super) used: AuthorityUsed,
    /// The approval that it spent, with the acts on it that counted.
    pub(super) approval: Option<Approval>,
}

impl Permitted {
    pub(super) fn tenant_id(&self) -> &TenantId {
        self.request.tenant()
    }

    /// The condition that fired, if the permission has ended.
    pub(super) fn condition(&self, reason: Reason) -> StopCondition {
        StopCondition::of(reason, self.used.kind)
    }
}

/// The present status of a permission, and the tenant's revision that it was read at. An unknown
/// tenant permits nothing. Uses memory only.
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

/// The request of a permitted decision with the authority that its record names, and the approval in its
/// facts.
///
/// # Errors
/// The record's authority or the approval is unreadable, so it is unknown what may have ended.
pub(super) fn permitted(
    request: Request,
    record: &[u8],
    facts: &[u8],
) -> Result<Permitted, ApiError> {
    let (used, approval) = (sealed::authority(record)?, sealed::approval(facts)?);
    let mut draft = Draft { explain: false, ..request.into_draft() };
    if used.kind == AuthorityKind::Delegation {
        draft.delegation_id = Some(used.id.clone());
    }
    let request = Request::new(draft).map_err(|_| ApiError::plain(ErrorCode::Internal))?;
    Ok(Permitted { request, used, approval })
}
