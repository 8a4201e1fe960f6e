//! The words of anchors, checks and drift events.

use serde::{Deserialize, Serialize};

use crate::levels::{RuntimeEffect, words};

words! {
    /// The kind of a source of truth.
    AnchorType {
        SystemOfRecord "system_of_record",
        ExternalSourceOfTruth "external_source_of_truth",
        PolicyContext "policy_context",
        RiskContext "risk_context",
        MarketContext "market_context",
        EnvironmentState "environment_state",
        ClinicalContext "clinical_context",
        FinancialContext "financial_context",
        InfrastructureContext "infrastructure_context",
        VendorContext "vendor_context",
        IdentityContext "identity_context",
    }
}

words! {
    /// The part of reality that a decision depends on.
    RealitySource {
        Anchor "anchor",
        Drift "drift",
    }
}

words! {
    /// The distance of the world from the assumptions; rising.
    CouplingResult {
        Coupled "coupled",
        CoupledWithWarnings "coupled_with_warnings",
        RevalidationRequired "revalidation_required",
        DecouplingDetected "decoupling_detected",
        Unknown "unknown",
        QuarantineRequired "quarantine_required",
        DenyRequired "deny_required",
    }
}

words! {
    /// The kinds of drift that the engine finds. A stored event may have another kind.
    DriftType {
        StableDrift "stable_drift",
        VerifiedButStale "verified_but_stale",
        SourceOfTruthStale "source_of_truth_stale",
        OperationalContextStale "operational_context_stale",
        PolicyContextShifted "policy_context_shifted",
        EnvironmentStateMismatch "environment_state_mismatch",
        SystemOfRecordConflict "system_of_record_conflict",
        AssumptionExpired "assumption_expired",
        SemanticAnchorDrift "semantic_anchor_drift",
        CrossSystemConsensusDrift "cross_system_consensus_drift",
    }
}

words! {
    /// The severity of a drift; rising.
    Severity {
        Low "low",
        Medium "medium",
        High "high",
        Critical "critical",
    }
}

impl CouplingResult {
    /// Returns the effect of this result.
    pub const fn effect(self) -> RuntimeEffect {
        match self {
            Self::Coupled => RuntimeEffect::Continue,
            Self::CoupledWithWarnings => RuntimeEffect::ContinueWithWarning,
            Self::RevalidationRequired => RuntimeEffect::RequireRevalidation,
            Self::DecouplingDetected | Self::Unknown => RuntimeEffect::RequireHumanReview,
            Self::QuarantineRequired => RuntimeEffect::Quarantine,
            Self::DenyRequired => RuntimeEffect::Deny,
        }
    }

    /// Returns the result of a finding with an effect from the anchor's contract.
    pub const fn of(effect: RuntimeEffect) -> Self {
        match effect {
            RuntimeEffect::Continue | RuntimeEffect::ContinueWithWarning => {
                Self::CoupledWithWarnings
            }
            RuntimeEffect::RequireRevalidation => Self::RevalidationRequired,
            RuntimeEffect::RequireHumanReview => Self::DecouplingDetected,
            RuntimeEffect::Quarantine => Self::QuarantineRequired,
            RuntimeEffect::Deny => Self::DenyRequired,
        }
    }

    /// Returns the severity of drift with this result; `None` if the result is not a drift.
    pub const fn severity(self) -> Option<Severity> {
        match self {
            Self::Coupled | Self::CoupledWithWarnings => None,
            Self::RevalidationRequired => Some(Severity::Medium),
            Self::DecouplingDetected | Self::Unknown => Some(Severity::High),
            Self::QuarantineRequired | Self::DenyRequired => Some(Severity::Critical),
        }
    }
}

impl Severity {
    /// Returns the effect of a drift event that does not name one.
    pub const fn effect(self) -> RuntimeEffect {
        match self {
            Self::Low => RuntimeEffect::ContinueWithWarning,
            Self::Medium => RuntimeEffect::RequireRevalidation,
            Self::High => RuntimeEffect::RequireHumanReview,
            Self::Critical => RuntimeEffect::Quarantine,
        }
    }
}
