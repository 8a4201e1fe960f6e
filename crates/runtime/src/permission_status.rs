//! Whether what was permitted still stands: asked before an allow is repeated, and by who watches.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use authority_api::error::{ApiError, ErrorCode};
use authority_core::graph::TenantHandle;
use authority_decision::{
    Facts, PermissionStatus, Reason, Request, StopCondition,
    verdict::{AuthorityKind, AuthorityUsed},
};
use authority_evidence::sealed;

/// A permitted request and the authority that permitted it: that another would permit it now does
/// not keep the first in force.
pub(super) struct Permitted {
    request: Request,
    used: AuthorityUsed,
}

impl Permitted {
    pub(super) fn tenant_id(&self) -> &str {
        &self.request.tenant_id
    }

    /// The condition that fired when it was found to stand no longer.
    pub(super) fn condition(&self, reason: Reason) -> StopCondition {
        StopCondition::of(reason, self.used.kind)
    }
}

/// What has become of a permission by now, and the revision of the tenant that tells it. A
/// tenant that is not there permits nothing. From memory alone.
pub(super) fn permission_status(
    handle: Option<&TenantHandle>,
    permitted: &Permitted,
    at: DateTime<Utc>,
) -> (i64, PermissionStatus) {
    let Permitted { request, used } = permitted;
    let gathered = handle.map(|handle| handle.read().gather(request)).unwrap_or_default();
    let revision = gathered.revision;
    let facts = Facts::new(Arc::new(gathered));
    (revision, PermissionStatus::judge(request, used, &facts, at))
}

/// The request of a permitted decision with the authority that its record names.
///
/// # Errors
/// The record names none that can be read: nobody knows then what may have ended.
pub(super) fn permitted(request: Request, record: &[u8]) -> Result<Permitted, ApiError> {
    let used = sealed::authority(record)?;
    let mut draft = request.into_draft();
    if used.kind == AuthorityKind::Delegation {
        draft.delegation_id = Some(used.id.clone());
    }
    let request = Request::new(draft).map_err(|_| ApiError::plain(ErrorCode::Internal))?;
    Ok(Permitted { request, used })
}
