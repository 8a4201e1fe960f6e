//! The approval that a request cites. Only `explain` shows why the approval doesn't count.

use authority_model::proto::runtime::CitedApproval;
use chrono::{DateTime, Utc};

use authority_decision::{Facts, Request, levels::ApprovalState};

/// The state of an approval that does not exist or belongs to another tenant or subject.
const UNKNOWN: &str = "unknown";

/// Returns the cited approval, or `None` if the request cites no approval.
pub(super) fn cited(request: &Request, facts: &Facts, at: DateTime<Utc>) -> Option<CitedApproval> {
    let id = request.approval_id.clone()?;
    let found = facts.approval.as_ref().filter(|found| found.id == id && found.same_subject);
    let state = found.map_or(UNKNOWN, |found| match found.state {
        // A worker updates the stored state some time after the expiry.
        ApprovalState::Pending | ApprovalState::Approved if found.expires_at <= at => {
            ApprovalState::Expired.word()
        }
        state => state.word(),
    });
    Some(CitedApproval { id: id.into(), state: state.to_owned() })
}
