//! The naive evaluator's reality: the worst finding of each anchor, drift events, overrides.

use authority_decision::reality::Anchor;

use super::*;

/// The findings about reality, with their obligations.
#[derive(Default)]
pub(super) struct Reality {
    pub(super) found: Vec<Found>,
    pub(super) obligations: Vec<String>,
    pub(super) consulted: bool,
}

pub(super) struct Found {
    pub(super) effect: &'static str,
    pub(super) since: DateTime<Utc>,
}

impl Reality {
    fn take(&mut self, effect: &'static str, since: DateTime<Utc>) {
        if effect == "continue_with_warning" {
            self.obligations.push("reality.warn".to_owned());
        }
        self.found.push(Found { effect, since });
    }
}

impl World<'_> {
    pub(super) fn reality(&self, way: &Way<'_>) -> Reality {
        let mut all = Reality::default();
        for anchor in &self.graph.reality.anchors {
            let profile = match &self.ask.purpose {
                _ if anchor.grounds_profiles.is_empty() => true,
                None => true,
                Some(purpose) => anchor.grounds_profiles.contains(purpose),
            };
            if anchor.active && profile && any_matches(&anchor.grounds_actions, &self.ask.action) {
                all.consulted = true;
                let mut rest = self.anchor(anchor);
                let before = rest.len();
                rest.retain(|(_, effect, drift_type, _)| {
                    matches!(*effect, "continue" | "continue_with_warning")
                        || !self.lifted(&anchor.id, drift_type)
                });
                let (_, mut effect, _, since) = rest[0];
                if rest.len() < before {
                    all.obligations.push("reality.overridden".to_owned());
                    if effect == "continue" {
                        effect = "continue_with_warning";
                    }
                }
                all.take(effect, since);
            }
        }
        for drift in &self.graph.reality.drifts {
            let takes_part = |actor: &PrincipalRef| {
                let mut links = way.links.iter();
                *actor == self.ask.subject
                    || links.any(|link| *actor == link.delegate_id || *actor == link.delegator_id)
            };
            let actor = drift.actor_id.as_ref().is_none_or(takes_part);
            let action = drift.action.as_ref().is_none_or(|own| matches(own, &self.ask.action));
            let fresh = drift.until_fresh.iter().filter(|seen| {
                self.graph.reality.anchors.iter().any(|anchor| {
                    anchor.id == seen.anchor_id
                        && anchor.newest.as_ref().is_some_and(|newest| {
                            let age = self.at - newest.sampled_at;
                            seen.sampled_at.is_none_or(|before| newest.sampled_at > before)
                                && seen
                                    .max_age_seconds
                                    .is_none_or(|most| age <= TimeDelta::seconds(most.into()))
                        })
                        && self.anchor(anchor)[0].0 < 2
                })
            });
            let over = !drift.until_fresh.is_empty() && fresh.count() == drift.until_fresh.len();
            if actor && action && !over {
                all.obligations.extend(drift.obligations.clone());
                let (mut effect, since) = (drift.effect.word(), drift.since);
                if !matches!(effect, "continue" | "continue_with_warning")
                    && self.lifted(&drift.id, &drift.drift_type)
                {
                    all.obligations.push("reality.overridden".to_owned());
                    effect = "continue_with_warning";
                }
                all.take(effect, since);
            }
        }
        all
    }

    fn lifted(&self, source: &str, drift_type: &str) -> bool {
        self.graph.reality.overrides.iter().any(|lifting| {
            self.at < lifting.until
                && lifting.action == self.ask.action
                && lifting.actor_id.as_ref().is_none_or(|actor| *actor == self.ask.subject)
                && lifting.lifts.iter().any(|lifted| {
                    (lifted.source_id.as_str(), lifted.drift_type.as_str()) == (source, drift_type)
                        && !lifted.found.is_empty()
                        && lifted.found.iter().all(|found| {
                            let mut anchors = self.graph.reality.anchors.iter();
                            let anchor = anchors.find(|anchor| anchor.id == found.anchor_id);
                            anchor.is_some_and(|anchor| match &anchor.newest {
                                None => found.snapshot_id.is_none() && !found.contested,
                                Some(newest) => {
                                    found.snapshot_id.as_ref() == Some(&newest.id)
                                        && found.contested == newest.contested
                                }
                            })
                        })
                })
        })
    }

    /// Returns an anchor's findings, the worst first: rank, effect, type of drift, and start.
    pub(super) fn anchor(
        &self,
        anchor: &Anchor,
    ) -> Vec<(usize, &'static str, &'static str, DateTime<Utc>)> {
        let changed = anchor.changed_at;
        if anchor.unreadable || !anchor.active {
            let unknown = (4, "require_human_review", "stable_drift", changed);
            return vec![unknown, (0, "continue", "", changed)];
        }
        let contract = anchor.freshness.as_ref();
        let mut stale = "require_revalidation";
        if let Some(effect) = contract.and_then(|c| c.stale_runtime_effect) {
            stale = effect.word();
        }
        let rank = |effect| match effect {
            "require_revalidation" => 2,
            "require_human_review" => 3,
            "quarantine" => 5,
            "deny" => 6,
            _ => 1,
        };
        let Some(snapshot) = &anchor.newest else {
            let missing = contract.and_then(|c| c.missing_runtime_effect);
            let effect = missing.map_or(stale, RuntimeEffect::word);
            let missing = (rank(effect), effect, "source_of_truth_stale", changed);
            return vec![missing, (0, "continue", "", changed)];
        };
        let mut all = vec![];
        if snapshot.contested {
            all.push((5, "quarantine", "cross_system_consensus_drift", changed));
        }
        let age = (self.at - snapshot.sampled_at).num_milliseconds();
        if age < -60_000 {
            all.push((4, "require_human_review", "stable_drift", changed));
        }
        let ends = contract.map(|c| {
            snapshot.sampled_at + chrono::TimeDelta::seconds(c.max_staleness_seconds.into())
        });
        let mut ends: Vec<_> = ends.into_iter().chain(snapshot.valid_until).collect();
        ends.sort();
        if let Some(end) = ends.first().filter(|end| **end <= self.at) {
            let kind = match anchor.anchor_type.word() {
                "environment_state"
                | "infrastructure_context"
                | "market_context"
                | "vendor_context" => "operational_context_stale",
                _ => "verified_but_stale",
            };
            all.push((rank(stale), stale, kind, changed.max(*end)));
        }
        if contract
            .and_then(|c| c.expected_refresh_seconds)
            .is_some_and(|seconds| age > i64::from(seconds) * 1000)
        {
            all.push((1, "continue_with_warning", "", changed));
        }
        all.push((0, "continue", "", changed));
        // Findings of the same rank keep their order.
        all.sort_by_key(|(rank, ..)| std::cmp::Reverse(*rank));
        all
    }
}
