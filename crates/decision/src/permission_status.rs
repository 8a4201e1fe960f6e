//! Whether a permission is still in force: the stop conditions of every allow.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    authority,
    case::Case,
    facts::Facts,
    levels::words,
    reality::Coupling,
    reason::Reason,
    request::Request,
    verdict::{AuthorityKind, AuthorityUsed},
};

words! {
    /// What ends a permission. A policy may name others (`@stop_condition`), which the agent itself has to
    /// watch.
    StopCondition {
        ActorStopSignal "actor.stop_signal",
        ActorSuspended "actor.suspended",
        AuthorityChanged "authority.changed",
        AuthorityRevoked "authority.revoked",
        CapabilityQuarantined "capability.quarantined",
        DelegationRevoked "delegation.revoked",
        RealityDecoupled "reality.decoupled",
        TenantSuspended "tenant.suspended",
    }
}

/// The present status of the authority under which something was permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionStatus {
    /// Why it is no longer in force.
    pub stopped: Option<Reason>,
    /// When it expires, or must be judged again, if nothing changes before.
    pub until: Option<DateTime<Utc>>,
}

impl PermissionStatus {
    /// Runs only the checks that can end an allow: the stage 1 checks of the authority, and the present state of
    /// reality. Bounds, purposes and policies concern the request: `judge_again` checks them. The approval in `facts`
    /// is the approval that the allow spent: it still meets a review that began before its acts. `used` is the
    /// authority that permitted the request, of any kind; the request also names a delegation.
    pub fn judge(
        request: &Request,
        used: &AuthorityUsed,
        facts: &Facts,
        at: DateTime<Utc>,
    ) -> Self {
        let case = Case::new(request, facts, at);
        let (candidate, refusal) = authority::standing(&case, used);
        let coupling = Coupling::evaluate(&case, &candidate);
        let given = facts.approval.as_ref().map_or(&[][..], |spent| &spent.given);
        let stopped = refusal.map(|refusal| refusal.reason).or_else(|| coupling.stops(given));
        let ends = [
            candidate.until(),
            authority::membership_until(&case),
            authority::denied_from(&case, &candidate),
            coupling.until,
        ];
        let until = ends.into_iter().flatten().min();
        Self { stopped, until: until.filter(|_| stopped.is_none()) }
    }
}

impl StopCondition {
    /// The condition that fired if a permission under such an authority has ended.
    pub fn of(reason: Reason, used: AuthorityKind) -> Self {
        // Grants of the subject besides the delegation, or denials.
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
            (
                Reason::RealityDecoupled
                | Reason::RealityRevalidationRequired
                | Reason::RealityReviewRequired,
                _,
            ) => Self::RealityDecoupled,
            // Revoked, suspended or expired, here or anywhere above: the chain is broken.
            (_, AuthorityKind::Delegation) if !is_besides => Self::DelegationRevoked,
            // The row was deleted, expired, or changed to something else.
            _ => Self::AuthorityRevoked,
        }
    }
}
