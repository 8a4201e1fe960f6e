//! Checks whether a permission still holds: the stop conditions of every allow.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    authority::{
        case::Case,
        choose,
        used::{AuthorityKind, AuthorityUsed},
    },
    facts::gathered::Facts,
    levels::words,
    reason::Reason,
    request::draft::Request,
    rules::reality::Coupling,
};

words! {
    /// The conditions that end a permission.
    ///
    /// A policy may name other conditions (`@stop_condition`), which the agent itself must watch.
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

/// The current status of a permission's authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionStatus {
    /// The reason why the permission has ended, if it has.
    pub stopped: Option<Reason>,
    /// The time at which the permission expires or must be judged again. A change may end it
    /// earlier.
    pub until: Option<DateTime<Utc>>,
}

impl PermissionStatus {
    /// Runs only the checks that can end an allow: the stage 1 checks of the authority, and the
    /// current state of reality.
    ///
    /// Bounds, purposes and policies concern the request: `judge_again` checks them. The approval
    /// in `facts` is the approval that the allow spent. It still covers findings that began before
    /// people approved. `used` is the authority that permitted the request. It may be of any kind,
    /// even if the request names a delegation.
    pub fn judge(
        request: &Request,
        used: &AuthorityUsed,
        facts: &Facts,
        at: DateTime<Utc>,
    ) -> Self {
        let case = Case::new(request, facts, at);
        let (candidate, refusal) = choose::standing(&case, used);
        let coupling = Coupling::evaluate(&case, &candidate);
        let given = facts.approval.as_ref().map_or(&[][..], |spent| &spent.given);
        let stopped = refusal.map(|refusal| refusal.reason).or_else(|| coupling.stops(given));
        let ends = [
            candidate.until(),
            choose::membership_until(&case),
            choose::denied_from(&case, &candidate),
            coupling.until,
        ];
        let until = ends.into_iter().flatten().min();
        Self { stopped, until: until.filter(|_| stopped.is_none()) }
    }
}

impl StopCondition {
    /// Returns the condition that fired if a permission under such an authority has ended.
    pub fn of(reason: Reason, used: AuthorityKind) -> Self {
        match reason {
            Reason::ActorStopped => Self::ActorStopSignal,
            Reason::CapabilityQuarantined | Reason::ToolDefinitionChanged => {
                Self::CapabilityQuarantined
            }
            Reason::SubjectUnknown | Reason::SubjectSuspended => Self::ActorSuspended,
            Reason::TenantInactive => Self::TenantSuspended,
            Reason::RealityDecoupled
            | Reason::RealityRevalidationRequired
            | Reason::RealityReviewRequired => Self::RealityDecoupled,
            // Other rows of the subject, or denials.
            Reason::CapabilityDenied
            | Reason::WorkspaceAccessMissing
            | Reason::ProjectAccessMissing => Self::AuthorityRevoked,
            // The authority itself was revoked, suspended, deleted or changed, or has expired. The
            // reasons after `DelegatorInactive` concern the request: `PermissionStatus::judge` does
            // not return them.
            Reason::PermissionMissing
            | Reason::DelegationUnknown
            | Reason::DelegationMismatch
            | Reason::DelegationNotYetValid
            | Reason::DelegationExpired
            | Reason::DelegationRevoked
            | Reason::DelegationSuspended
            | Reason::DelegatorInactive
            | Reason::PermissionGranted
            | Reason::SubjectNotPermitted
            | Reason::ConstraintExceeded
            | Reason::RiskExceedsDelegation
            | Reason::JurisdictionUnsupported
            | Reason::ResourceAccessMissing
            | Reason::ToolMismatch
            | Reason::ContextIncomplete
            | Reason::ContextInvalid
            | Reason::PurposeUnknown
            | Reason::PurposeNotAdmitted
            | Reason::PurposeOutOfScope
            | Reason::PurposeRequired
            | Reason::RuleError
            | Reason::PolicyDenied
            | Reason::ApprovalThresholdBreach
            | Reason::RiskProhibited
            | Reason::DeclarationRequired
            | Reason::OversightRequired
            | Reason::ObligationUnsupported
            | Reason::ApprovalDeclined
            | Reason::ApprovalLimitReached
            | Reason::Own(_) => match used {
                AuthorityKind::Delegation => Self::DelegationRevoked,
                AuthorityKind::Uses | AuthorityKind::ActsIn => Self::AuthorityRevoked,
            },
        }
    }
}
