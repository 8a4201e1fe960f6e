//! A coupling check: compares the assumptions about some anchors with their observations.

use authority_ids::EntityRef;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    anchors::Anchor,
    finding::{Finding, FindingKind},
    words::{CouplingResult, DriftType},
};
use crate::levels::RuntimeEffect;

/// An assumption of a check about an anchor's newest snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assumption {
    pub anchor_id: EntityRef,
    pub expected_content_hash: Option<String>,
    /// The path of an observation that must exist (RFC 6901).
    pub path: Option<String>,
    /// The value that the observation must have; any value if absent.
    pub equals: Option<Value>,
    pub max_age_seconds: Option<u32>,
}

/// The observations of a snapshot, by path.
pub type Observations = Vec<(String, Value)>;

/// An anchor that a check consults, with the observations of its newest snapshot.
#[derive(Clone, Debug)]
pub struct CheckedAnchor {
    pub id: EntityRef,
    /// `None` if the tenant does not have this anchor.
    pub anchor: Option<Anchor>,
    pub observations: Observations,
}

/// A finding that a person tolerates in one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tolerated {
    pub anchor_id: EntityRef,
    pub drift_type: String,
    /// The hash of the newest snapshot when the person tolerated the finding.
    pub content_hash: Option<String>,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The worst finding of each anchor, in the order given.
    pub findings: Vec<(EntityRef, Finding)>,
    /// All drifts with their anchors. An override of this check lifts them.
    pub drifts: Vec<(EntityRef, DriftType)>,
    /// The worst result.
    pub result: CouplingResult,
    /// The strongest effect.
    pub effect: RuntimeEffect,
}

/// Judges a check as of the time `at`.
///
/// A check without anchors cannot find anything. Its result is a warning.
pub fn judge(
    anchors: &[CheckedAnchor],
    assumptions: &[Assumption],
    tolerated: &[Tolerated],
    at: DateTime<Utc>,
) -> Checked {
    let (mut findings, mut drifts) = (Vec::with_capacity(anchors.len()), Vec::new());
    for checked in anchors {
        let own = assumptions.iter().filter(|assumed| assumed.anchor_id == checked.id);
        let tolerated = tolerated.iter().filter(|known| known.anchor_id == checked.id);
        let all = checked.judge(own, &tolerated.collect::<Vec<_>>(), at);
        let drift_types = all.iter().filter(|found| found.is_drift()).filter_map(|f| f.drift_type);
        drifts.extend(drift_types.map(|drift_type| (checked.id.clone(), drift_type)));
        findings
            .extend(all.into_iter().reduce(Finding::worse).map(|one| (checked.id.clone(), one)));
    }
    drifts.dedup();
    let nothing = CouplingResult::CoupledWithWarnings;
    Checked {
        result: findings.iter().map(|(_, finding)| finding.result).max().unwrap_or(nothing),
        effect: findings
            .iter()
            .map(|(_, finding)| finding.effect)
            .max()
            .unwrap_or(nothing.effect()),
        findings,
        drifts,
    }
}

impl CheckedAnchor {
    /// Returns all findings about the anchor, at least one.
    fn judge<'a>(
        &self,
        assumptions: impl Iterator<Item = &'a Assumption>,
        tolerated: &[&Tolerated],
        at: DateTime<Utc>,
    ) -> Vec<Finding> {
        let Some(anchor) = &self.anchor else {
            return vec![Finding {
                kind: FindingKind::Unknown,
                result: CouplingResult::Unknown,
                effect: CouplingResult::Unknown.effect(),
                drift_type: Some(DriftType::StableDrift),
                since: at,
            }];
        };
        let mut all = vec![anchor.coupled()];
        let mut found = |finding| all.push(tolerable(anchor, finding, tolerated));
        anchor.each_finding(at, &mut found);
        let newest = anchor.newest.as_ref().filter(|_| anchor.active && !anchor.unreadable);
        let Some(newest) = newest else { return all };
        for assumed in assumptions {
            let mut add = |kind| found(Finding::new(kind, anchor, anchor.changed_at));
            let expected = assumed.expected_content_hash.as_ref();
            if expected.is_some_and(|expected| *expected != newest.content_hash) {
                add(FindingKind::OtherContent);
            }
            if !self.observes(assumed) {
                add(FindingKind::OtherValue);
            }
            if assumed.max_age_seconds.is_some_and(|seconds| newest.is_older(at, seconds)) {
                add(FindingKind::AssumptionExpired);
            }
        }
        all
    }

    /// Returns the assumed paths with a different value or without a value.
    pub fn mismatched_paths<'a>(
        &self,
        assumptions: &'a [Assumption],
    ) -> impl Iterator<Item = &'a String> {
        let own = assumptions.iter().filter(|assumed| assumed.anchor_id == self.id);
        own.filter(|assumed| !self.observes(assumed)).filter_map(|assumed| assumed.path.as_ref())
    }

    /// Whether there are observations at the assumed path and all of them have the assumed value.
    fn observes(&self, assumed: &Assumption) -> bool {
        let Some(path) = &assumed.path else { return true };
        let mut values = self.observations.iter().filter(|(at, _)| at == path).peekable();
        let same = |value| assumed.equals.as_ref().is_none_or(|equals| is_same(value, equals));
        values.peek().is_some() && values.all(|(_, value)| same(value))
    }
}

/// Lowers a finding to a warning if it was tolerated before with the same anchor, kind and content.
fn tolerable(anchor: &Anchor, finding: Finding, tolerated: &[&Tolerated]) -> Finding {
    let hash = anchor.newest.as_ref().map(|newest| newest.content_hash.as_str());
    let is_known = tolerated.iter().any(|known| {
        finding.drift_type.is_some_and(|found| found.word() == known.drift_type)
            && known.content_hash.as_deref() == hash
    });
    if !is_known || finding.result <= CouplingResult::CoupledWithWarnings {
        return finding;
    }
    let result = CouplingResult::CoupledWithWarnings;
    Finding { result, effect: result.effect(), drift_type: None, ..finding }
}

/// Whether two values are equal. 1 and 1.0 are equal, as in RFC 8785.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value)| other.get(key).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}
