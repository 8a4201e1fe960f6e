//! The findings about an anchor at a given time.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    anchors::{Anchor, Snapshot},
    words::{AnchorType, CouplingResult, DriftType},
};
use crate::levels::RuntimeEffect;

/// The maximum time by which a sample may be ahead of the judgement.
pub const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(60);

/// The kinds of findings, in the order of the table in docs/reference/reality.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// Two snapshots of the same time have different contents.
    Contested,
    /// The snapshot is from the future, or it cannot be read, or the anchor is not active.
    Unknown,
    /// The content differs from the assumed content.
    OtherContent,
    /// An observed value is missing or differs from the assumed value.
    OtherValue,
    /// The anchor has no snapshot.
    Missing,
    /// The snapshot is older than the contract allows, or no longer valid.
    Stale,
    /// The snapshot is older than an assumption allows.
    AssumptionExpired,
    /// The snapshot is later than expected.
    Late,
    /// The anchor has no problem.
    Coupled,
}

/// A finding about one anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    pub result: CouplingResult,
    pub effect: RuntimeEffect,
    /// The type of drift; `None` if the finding is not a drift.
    pub drift_type: Option<DriftType>,
    /// When the finding began. An earlier review does not cover it.
    pub since: DateTime<Utc>,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, anchor: &Anchor, since: DateTime<Utc>) -> Self {
        let contract = anchor.freshness;
        let stale = contract.and_then(|contract| contract.stale_runtime_effect);
        let stale = stale.unwrap_or(RuntimeEffect::RequireRevalidation);
        let missing = contract.and_then(|contract| contract.missing_runtime_effect);
        let result = match kind {
            FindingKind::Contested => CouplingResult::QuarantineRequired,
            FindingKind::Unknown => CouplingResult::Unknown,
            FindingKind::OtherContent | FindingKind::OtherValue => {
                CouplingResult::DecouplingDetected
            }
            FindingKind::AssumptionExpired => CouplingResult::RevalidationRequired,
            FindingKind::Late => CouplingResult::CoupledWithWarnings,
            FindingKind::Coupled => CouplingResult::Coupled,
            FindingKind::Missing => {
                return Self::by(missing.unwrap_or(stale), kind, anchor, since);
            }
            FindingKind::Stale => return Self::by(stale, kind, anchor, since),
        };
        let (effect, drift_type) = (result.effect(), drift_type(kind, anchor.anchor_type));
        Self { kind, result, effect, drift_type, since }
    }

    /// Creates a finding with an effect from the contract.
    fn by(effect: RuntimeEffect, kind: FindingKind, anchor: &Anchor, since: DateTime<Utc>) -> Self {
        let drift_type = drift_type(kind, anchor.anchor_type);
        Self { kind, result: CouplingResult::of(effect), effect, drift_type, since }
    }

    /// Whether the effect is stronger than a warning.
    pub fn is_drift(&self) -> bool {
        self.effect > RuntimeEffect::ContinueWithWarning
    }

    /// Returns the worse of two findings. If they are equally bad, returns the first in the table.
    pub(crate) fn worse(self, other: Self) -> Self {
        let is_worse = (other.result, std::cmp::Reverse(other.kind))
            > (self.result, std::cmp::Reverse(self.kind));
        if is_worse { other } else { self }
    }
}

const fn drift_type(kind: FindingKind, anchor: AnchorType) -> Option<DriftType> {
    Some(match kind {
        FindingKind::Contested => DriftType::CrossSystemConsensusDrift,
        FindingKind::Unknown => DriftType::StableDrift,
        FindingKind::OtherContent => match anchor {
            AnchorType::SystemOfRecord => DriftType::SystemOfRecordConflict,
            AnchorType::PolicyContext => DriftType::PolicyContextShifted,
            AnchorType::EnvironmentState | AnchorType::InfrastructureContext => {
                DriftType::EnvironmentStateMismatch
            }
            _ => DriftType::StableDrift,
        },
        FindingKind::OtherValue => DriftType::SemanticAnchorDrift,
        FindingKind::Missing => DriftType::SourceOfTruthStale,
        FindingKind::Stale => match anchor {
            AnchorType::EnvironmentState
            | AnchorType::InfrastructureContext
            | AnchorType::MarketContext
            | AnchorType::VendorContext => DriftType::OperationalContextStale,
            _ => DriftType::VerifiedButStale,
        },
        FindingKind::AssumptionExpired => DriftType::AssumptionExpired,
        FindingKind::Late | FindingKind::Coupled => return None,
    })
}

impl Anchor {
    /// Returns the finding for an anchor without problems.
    pub(crate) fn coupled(&self) -> Finding {
        Finding::new(FindingKind::Coupled, self, self.changed_at)
    }

    /// Judges only the anchor and its newest snapshot, at `at`. Returns the worst finding.
    pub fn judge(&self, at: DateTime<Utc>) -> Finding {
        let mut worst = self.coupled();
        self.each_finding(at, |finding| worst = worst.worse(finding));
        worst
    }

    /// Calls `found` with each finding that follows from the anchor and its newest snapshot.
    pub(crate) fn each_finding(&self, at: DateTime<Utc>, mut found: impl FnMut(Finding)) {
        let finding = |kind| Finding::new(kind, self, self.changed_at);
        if self.unreadable || !self.active {
            return found(finding(FindingKind::Unknown));
        }
        let Some(newest) = &self.newest else { return found(finding(FindingKind::Missing)) };
        if newest.contested {
            found(finding(FindingKind::Contested));
        }
        if newest.sampled_at - at > CLOCK_SKEW {
            found(finding(FindingKind::Unknown));
        }
        if let Some(since) = self.stale_from(newest).filter(|since| *since <= at) {
            // A review before the last change of the contract does not cover staleness under the
            // new contract.
            found(Finding::new(FindingKind::Stale, self, since.max(self.changed_at)));
        }
        let expected = self.freshness.and_then(|contract| contract.expected_refresh_seconds);
        if expected.is_some_and(|seconds| newest.is_older(at, seconds)) {
            found(finding(FindingKind::Late));
        }
    }

    /// Returns the first moment after `at` at which time alone makes the anchor stale.
    pub fn stale_after(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let newest = self.newest.as_ref()?;
        self.stale_from(newest).filter(|moment| *moment > at)
    }

    /// Returns when the snapshot becomes stale, by the contract or by its own `valid_until`.
    fn stale_from(&self, newest: &Snapshot) -> Option<DateTime<Utc>> {
        let contract = self.freshness.map(|contract| {
            let most = TimeDelta::seconds(contract.max_staleness_seconds.into());
            // The sum is out of range only for a sample at the end of time, which is refused.
            newest.sampled_at.checked_add_signed(most).unwrap_or(DateTime::<Utc>::MAX_UTC)
        });
        [contract, newest.valid_until].into_iter().flatten().min()
    }
}

impl Snapshot {
    /// Whether the snapshot is older than this many seconds.
    pub(crate) fn is_older(&self, at: DateTime<Utc>, seconds: u32) -> bool {
        at > self.older_after(seconds)
    }

    /// Returns the moment after which the snapshot is older than this many seconds.
    pub(crate) fn older_after(&self, seconds: u32) -> DateTime<Utc> {
        let most = TimeDelta::seconds(seconds.into());
        self.sampled_at.checked_add_signed(most).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}
