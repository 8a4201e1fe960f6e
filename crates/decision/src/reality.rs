//! Stage 3, second: has the world moved from what the authority assumed?
//!
//! Staleness is determined at the decision's own time, so an anchor goes stale without any change.
//! Coupling can only lower a verdict, never raise it. The table is in docs/decision.md.

use chrono::TimeDelta;

use super::{
    case::Case,
    facts::{Anchor, Drift},
    levels::RuntimeEffect,
    pattern::covered,
};

/// How far ahead of the decision a sample's time may be.
const CLOCK_SKEW_SECONDS: i64 = 60;

/// The effect of each consulted anchor and of each open drift event, with its kind and id.
pub(super) fn effects<'a>(
    case: &Case<'a>,
) -> impl Iterator<Item = (&'static str, &'a str, RuntimeEffect)> {
    let case = *case;
    let anchors = case.gathered.anchors.iter().filter(move |anchor| is_consulted(&case, anchor));
    let drifts = case.gathered.drifts.iter().filter(move |drift| concerns(&case, drift));
    let anchors = anchors.map(move |a| ("anchor", a.id.as_str(), anchor_effect(&case, a)));
    anchors.chain(drifts.map(|drift| ("drift", drift.id.as_str(), drift.effect)))
}

/// A request without a purpose does not avoid an anchor that grounds only some purposes.
fn is_consulted(case: &Case<'_>, anchor: &Anchor) -> bool {
    let profiles = &anchor.grounds_profiles;
    covered(&anchor.grounds_actions, &case.request.action)
        && (profiles.is_empty()
            || case.request.purpose.as_ref().is_none_or(|own| profiles.contains(own)))
}

fn concerns(case: &Case<'_>, drift: &Drift) -> bool {
    drift.actor_id.as_ref().is_none_or(|actor| *actor == case.request.subject)
        && drift.action.as_ref().is_none_or(|action| action.covers(&case.request.action))
        && drift.overridden_until.is_none_or(|until| until <= case.at)
}

fn anchor_effect(case: &Case<'_>, anchor: &Anchor) -> RuntimeEffect {
    if anchor.overridden_until.is_some_and(|until| case.at < until) {
        return RuntimeEffect::Continue;
    }
    if anchor.unreadable {
        // It cannot be evaluated: unknown.
        return RuntimeEffect::RequireHumanReview;
    }
    let contract = anchor.freshness;
    let stale = contract
        .and_then(|contract| contract.stale_runtime_effect)
        .unwrap_or(RuntimeEffect::RequireRevalidation);
    let Some(newest) = &anchor.newest else {
        return contract.and_then(|contract| contract.missing_runtime_effect).unwrap_or(stale);
    };
    if newest.contested {
        return RuntimeEffect::Quarantine;
    }
    let age = case.at - newest.sampled_at;
    if age < -TimeDelta::seconds(CLOCK_SKEW_SECONDS) {
        return RuntimeEffect::RequireHumanReview;
    }
    let older = |seconds: u32| age > TimeDelta::seconds(seconds.into());
    let expired = newest.valid_until.is_some_and(|until| until <= case.at);
    if expired || contract.is_some_and(|contract| older(contract.max_staleness_seconds)) {
        return stale;
    }
    let late = contract.and_then(|contract| contract.expected_refresh_seconds).is_some_and(older);
    if late { RuntimeEffect::ContinueWithWarning } else { RuntimeEffect::Continue }
}
