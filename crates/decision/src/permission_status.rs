//! Whether what was permitted still stands: the stop conditions that every allow carries.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    authority,
    case::Case,
    facts::Facts,
    levels::words,
    reason::Reason,
    request::Request,
    verdict::{AuthorityKind, AuthorityUsed},
};

words! {
    /// What ends a permission that was given. A policy may name others (`@stop_condition`); those
    /// are the agent's own to look out for.
    StopCondition {
        ActorStopSignal "actor.stop_signal",
        ActorSuspended "actor.suspended",
        AuthorityRevoked "authority.revoked",
        CapabilityQuarantined "capability.quarantined",
        DelegationRevoked "delegation.revoked",
        TenantSuspended "tenant.suspended",
    }
}

/// What has become of the authority under which something was permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionStatus {
    /// Why it stands no longer.
    pub stopped: Option<Reason>,
    /// When it ends by itself, if nothing changes before.
    pub until: Option<DateTime<Utc>>,
}

impl PermissionStatus {
    /// Judges by the checks of stage 1 that can end an allow, and by no other: bounds, purposes and
    /// rules judged the question, and what was answered stays answered. `used` is the authority that
    /// it was permitted under, of whatever kind; a delegation is named by the request as well.
    pub fn judge(
        request: &Request,
        used: &AuthorityUsed,
        facts: &Facts,
        at: DateTime<Utc>,
    ) -> Self {
        let case = Case::new(request, facts, at);
        let (candidate, refusal) = authority::standing(&case, used);
        let stopped = refusal.map(|refusal| refusal.reason);
        let ends =
            [candidate.until(), authority::membership_until(&case), authority::denied_from(&case)];
        let until = ends.into_iter().flatten().min();
        Self { stopped, until: until.filter(|_| stopped.is_none()) }
    }
}

impl StopCondition {
    /// The condition that fired when a permission under such an authority is found to stand no
    /// longer.
    pub fn of(reason: Reason, used: AuthorityKind) -> Self {
        // What the subject was given besides the delegation, or was denied.
        let is_besides = matches!(
            reason,
            Reason::CapabilityDenied
                | Reason::WorkspaceAccessMissing
                | Reason::ProjectAccessMissing
        );
        match (reason, used) {
            (Reason::ActorStopped, _) => Self::ActorStopSignal,
            (Reason::CapabilityQuarantined, _) => Self::CapabilityQuarantined,
            (Reason::SubjectUnknown | Reason::SubjectSuspended, _) => Self::ActorSuspended,
            (Reason::TenantInactive, _) => Self::TenantSuspended,
            // Revoked, suspended or expired, here or anywhere above: the chain carries no more.
            (_, AuthorityKind::Delegation) if !is_besides => Self::DelegationRevoked,
            // The row is gone, or over, or about something else by now.
            _ => Self::AuthorityRevoked,
        }
    }
}
