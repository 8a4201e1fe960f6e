//! Whether what was permitted still stands: the stop conditions that every allow carries.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{authority, case::Case, facts::Facts, levels::words, reason::Reason, request::Request};

words! {
    /// What ends a permission that was given. A policy may name others (`@stop_condition`); those
    /// are the agent's own to look out for.
    StopCondition {
        ActorStopSignal "actor.stop_signal",
        ActorSuspended "actor.suspended",
        CapabilityQuarantined "capability.quarantined",
        DelegationRevoked "delegation.revoked",
        TenantSuspended "tenant.suspended",
    }
}

/// What has become of the authority under which something was permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Why it stands no longer.
    pub stopped: Option<Reason>,
    /// When it ends by itself, if nothing changes before.
    pub until: Option<DateTime<Utc>>,
}

impl Standing {
    /// Judges by the rows of stage 1 that can end an allow, and by no other: bounds, purposes and
    /// rules judged the question, and what was answered stays answered. The request names the
    /// delegation that it was permitted under.
    pub fn judge(request: &Request, facts: &Facts, at: DateTime<Utc>) -> Self {
        let choice = authority::standing(&Case::new(request, facts, at));
        let stopped = choice.refusal.map(|refusal| refusal.reason);
        Self { stopped, until: choice.candidate.until().filter(|_| stopped.is_none()) }
    }
}

impl StopCondition {
    /// The condition that fired when a permission is found to stand no longer.
    pub fn of(reason: Reason) -> Self {
        match reason {
            Reason::ActorStopped => Self::ActorStopSignal,
            Reason::CapabilityQuarantined => Self::CapabilityQuarantined,
            Reason::SubjectUnknown | Reason::SubjectSuspended => Self::ActorSuspended,
            Reason::TenantInactive => Self::TenantSuspended,
            // Revoked, suspended or expired, here or anywhere above: the chain carries no more.
            _ => Self::DelegationRevoked,
        }
    }
}
