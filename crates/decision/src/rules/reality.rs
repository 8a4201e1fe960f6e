//! Stage 3, second part: checks whether the world has moved from the assumptions of the authority.
//!
//! Staleness is judged at the decision's own time: an anchor goes stale without any change. Reality
//! can only lower a verdict, never raise it. The tables are in docs/reference/decision.md and
//! docs/reference/reality.md.

use std::sync::Arc;

use authority_ids::EntityRef;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{evaluation::distinct, needed::Needed};
use crate::{
    authority::{
        candidate::Candidate,
        case::Case,
        choose::takes_part,
        trace_step::{Outcome, TraceStep},
    },
    facts::{
        reality::{
            Anchor, CheckedState, CouplingResult, Drift, DriftType, Override, RealitySource,
        },
        records::Signature,
    },
    levels::RuntimeEffect,
    moment,
    pattern::covered,
    reason::Reason,
};

/// An anchor's finding, or a drift event, that holds an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldByReality {
    pub source: RealitySource,
    /// The id of the anchor or the drift event.
    pub id: EntityRef,
    /// The kind of drift.
    pub drift_type: String,
    pub effect: RuntimeEffect,
    /// When the finding or the drift began. An earlier approval does not review it.
    #[serde(with = "moment")]
    pub since: DateTime<Utc>,
}

/// The requirements of reality for one decision.
#[derive(Default)]
pub(crate) struct Coupling<'a> {
    pub(crate) denials: Vec<Reason>,
    /// Holds that only a new snapshot or an override can meet.
    pub(crate) unapprovable: Vec<Reason>,
    /// Holds that people can meet.
    pub(crate) holds: Vec<Reason>,
    pub(crate) needed: Needed,
    /// The causes of all holds.
    pub(crate) held_by: Vec<HeldByReality>,
    pub(crate) obligations: Vec<&'a str>,
    /// Whether any anchor was consulted.
    pub(crate) consulted: bool,
    /// The first moment at which time alone makes an anchor stale or ends a used override.
    pub(crate) until: Option<DateTime<Utc>>,
    /// The steps for `explain`.
    pub(crate) steps: Vec<TraceStep>,
}

impl<'a> Coupling<'a> {
    pub(crate) fn evaluate(case: &Case<'a>, candidate: &Candidate<'a>) -> Self {
        let mut coupling = Self::default();
        let reality = &case.gathered.reality;
        // Obligations and holds are listed in order of ids, independent of the order of the facts.
        let mut anchors: Vec<&Anchor> = reality.anchors.iter().map(Arc::as_ref).collect();
        anchors.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        let mut drifts: Vec<&Drift> = reality.drifts.iter().map(Arc::as_ref).collect();
        drifts.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        for anchor in anchors.into_iter().filter(|anchor| is_consulted(case, anchor)) {
            coupling.consulted = true;
            coupling.ends_at(anchor.stale_after(case.at));
            coupling.take_anchor(case, anchor);
        }
        for drift in drifts.into_iter().filter(|drift| concerns(case, candidate, drift)) {
            if let Some(Over { until }) = Over::of(case, drift) {
                coupling.ends_at(until);
                continue;
            }
            coupling.obligations.extend(drift.obligations.iter().map(String::as_str));
            let lifted = lifted_by(case, &drift.id, &drift.drift_type);
            let lifted = lifted.filter(|_| drift.effect > RuntimeEffect::ContinueWithWarning);
            let effect = if lifted.is_some() { RuntimeEffect::Continue } else { drift.effect };
            let cause = Cause {
                source: RealitySource::Drift,
                id: &drift.id,
                drift_type: Some(&drift.drift_type),
                effect,
                since: drift.since,
            };
            coupling.take(case, &cause, lifted);
        }
        coupling.steps.sort_by(|one, other| (&one.kind, &one.id).cmp(&(&other.kind, &other.id)));
        distinct(&mut coupling.denials);
        coupling
    }

    /// Returns why a permitted action must stop, given the acts of the approval that it spent.
    pub(crate) fn stops(&self, given: &[Signature]) -> Option<Reason> {
        let unmet = !self.needed.is_nobody() && !self.needed.is_met_by(given);
        let holds = self.holds.iter().filter(|_| unmet);
        self.denials.iter().chain(&self.unapprovable).chain(holds).next().copied()
    }

    fn ends_at(&mut self, moment: Option<DateTime<Utc>>) {
        self.until = [self.until, moment].into_iter().flatten().min();
    }

    /// Applies an anchor's worst finding. Findings that an override lifts are left out.
    fn take_anchor(&mut self, case: &Case<'a>, anchor: &Anchor) {
        let mut worst = anchor.coupled();
        let mut lifted: Option<&Override> = None;
        anchor.each_finding(case.at, |finding| {
            let drift_type = finding.drift_type.filter(|_| finding.is_drift());
            let lifting = drift_type.and_then(|found| lifted_by(case, &anchor.id, found.word()));
            match lifting {
                None => worst = worst.worse(finding),
                // If there are several overrides, the first to end counts.
                Some(one) if lifted.is_none_or(|other| one.until < other.until) => {
                    lifted = Some(one);
                }
                Some(_) => {}
            }
        });
        let cause = Cause {
            source: RealitySource::Anchor,
            id: &anchor.id,
            drift_type: worst.drift_type.map(DriftType::word),
            effect: worst.effect,
            since: worst.since,
        };
        self.take(case, &cause, lifted);
    }

    fn take(&mut self, case: &Case<'a>, cause: &Cause<'_>, lifted: Option<&Override>) {
        let effect = if let Some(lifting) = lifted {
            self.obligations.push("reality.overridden");
            self.ends_at(Some(lifting.until));
            cause.effect.max(RuntimeEffect::ContinueWithWarning)
        } else {
            cause.effect
        };
        let (outcome, reason_code) = match effect {
            RuntimeEffect::Continue => (Outcome::Pass, None),
            RuntimeEffect::ContinueWithWarning => {
                self.obligations.push("reality.warn");
                (Outcome::Pass, None)
            }
            RuntimeEffect::RequireRevalidation => {
                self.unapprovable.push(Reason::RealityRevalidationRequired);
                (Outcome::Hold, Some(Reason::RealityRevalidationRequired))
            }
            RuntimeEffect::RequireHumanReview => {
                self.holds.push(Reason::RealityReviewRequired);
                self.needed.take(Needed::review(cause.since));
                (Outcome::Hold, Some(Reason::RealityReviewRequired))
            }
            RuntimeEffect::Quarantine | RuntimeEffect::Deny => {
                self.denials.push(Reason::RealityDecoupled);
                (Outcome::Refuse, Some(Reason::RealityDecoupled))
            }
        };
        if outcome == Outcome::Hold {
            self.held_by.push(cause.held());
        }
        if case.request.explain {
            let detail = match lifted {
                Some(lifting) => format!("{effect}: overridden by check {}", lifting.check_id),
                None => cause.detail(),
            };
            let kind = cause.source.word();
            self.steps.push(TraceStep::new(kind, cause.id, outcome, reason_code, detail));
        }
    }
}

/// The effect of an anchor or a drift event, and its cause.
struct Cause<'c> {
    source: RealitySource,
    id: &'c EntityRef,
    /// The type of drift; `None` if there was no drift.
    drift_type: Option<&'c str>,
    effect: RuntimeEffect,
    since: DateTime<Utc>,
}

impl Cause<'_> {
    fn held(&self) -> HeldByReality {
        HeldByReality {
            source: self.source,
            id: self.id.clone(),
            drift_type: self.drift_type.unwrap_or_default().to_owned(),
            effect: self.effect,
            since: self.since,
        }
    }

    /// Describes the cause for people.
    fn detail(&self) -> String {
        let effect = self.effect;
        self.drift_type.map_or_else(
            || effect.word().to_owned(),
            |drift_type| format!("{effect}: {drift_type} since {}", moment::text(self.since)),
        )
    }
}

/// Whether the anchor is consulted. If the anchor is only for some purposes, a request without a
/// purpose also consults it.
fn is_consulted(case: &Case<'_>, anchor: &Anchor) -> bool {
    let profiles = &anchor.grounds_profiles;
    // Checks the anchor's own fields, because the list also contains anchors that only a drift
    // event or an override names.
    anchor.active
        && covered(&anchor.grounds_actions, &case.request.action)
        && (profiles.is_empty()
            || case.request.purpose.as_ref().is_none_or(|own| profiles.contains(own)))
}

/// Whether the drift concerns the request.
///
/// Drift of another participant in the chain also concerns the subject, which acts on that
/// participant's authority.
fn concerns(case: &Case<'_>, candidate: &Candidate<'_>, drift: &Drift) -> bool {
    drift.actor_id.as_ref().is_none_or(|actor| takes_part(case, candidate, actor))
        && drift.action.as_ref().is_none_or(|action| action.covers(&case.request.action))
}

/// A drift about age that is over: each of its anchors now has a newer, fresh snapshot.
struct Over {
    /// The moment at which time alone makes the drift apply again.
    until: Option<DateTime<Utc>>,
}

impl Over {
    /// Returns `None` if the drift still applies.
    fn of(case: &Case<'_>, drift: &Drift) -> Option<Self> {
        let mut until: Option<DateTime<Utc>> = None;
        for seen in &drift.until_fresh {
            let mut anchors = case.gathered.reality.anchors.iter();
            let anchor = anchors.find(|anchor| anchor.id == seen.anchor_id)?;
            let newest = anchor.newest.as_ref();
            let newest = newest.filter(|newest| Some(newest.sampled_at) > seen.sampled_at)?;
            let too_old_after = seen.max_age_seconds.map(|seconds| newest.older_after(seconds));
            if too_old_after.is_some_and(|moment| moment < case.at)
                || anchor.judge(case.at).result > CouplingResult::CoupledWithWarnings
            {
                return None;
            }
            until = [until, too_old_after, anchor.stale_after(case.at)].into_iter().flatten().min();
        }
        (!drift.until_fresh.is_empty()).then_some(Self { until })
    }
}

/// Returns the override that lifts exactly this finding for this action and actor.
///
/// If there are several such overrides, returns the last to end.
fn lifted_by<'a>(case: &Case<'a>, source_id: &EntityRef, drift_type: &str) -> Option<&'a Override> {
    let anchors = &case.gathered.reality.anchors;
    let is_present = |found: &CheckedState| anchors.iter().any(|anchor| found.is_present(anchor));
    let concerns = |lifting: &&Override| {
        lifting.until > case.at
            && lifting.action == case.request.action
            && lifting.actor_id.as_ref().is_none_or(|actor| *actor == case.request.subject)
            && lifting.lifts.iter().any(|lifted| {
                lifted.source_id == *source_id
                    && lifted.drift_type == drift_type
                    && !lifted.found.is_empty()
                    && lifted.found.iter().all(is_present)
            })
    };
    let overrides = case.gathered.reality.overrides.iter().map(|lifting| &**lifting);
    overrides.filter(concerns).max_by_key(|lifting| lifting.until)
}
