//! A tenant's reality: anchors with their newest snapshots, overrides, drift events.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use authority_decision::{
    Draft,
    chain::participants,
    pattern::covered,
    reality::{Anchor, Drift, Override, Reality, Snapshot},
    records::Chain,
};
use authority_ids::{EntityRef, PrincipalRef};
use chrono::{DateTime, Utc};

/// A tenant's reality, in order of ids, since facts are hashed.
#[derive(Default)]
pub(super) struct World {
    /// The active anchors, without their snapshots.
    pub(super) anchors: BTreeMap<EntityRef, Anchor>,
    /// Heads by anchor id.
    pub(super) heads: HashMap<EntityRef, AnchorHead>,
    pub(super) overrides: BTreeMap<EntityRef, Arc<Override>>,
    pub(super) drifts: BTreeMap<EntityRef, Arc<Drift>>,
    /// The facts of a request that reality does not concern.
    nothing: Arc<Reality>,
}

impl World {
    /// Returns the facts that may concern this subject's request under any of these chains.
    pub(super) fn concerning(&self, request: &Draft, chains: &[Chain]) -> Arc<Reality> {
        if self.anchors.is_empty() && self.drifts.is_empty() {
            return Arc::clone(&self.nothing);
        }
        let (action, actors) = (&request.action, participants(&request.subject, chains));
        let drifts = self.drifts.values().filter(|drift| {
            drift.actor_id.as_ref().is_none_or(|actor| actors.contains(actor))
                && drift.action.as_ref().is_none_or(|own| own.covers(action))
        });
        let drifts: Vec<_> = drifts.cloned().collect();
        let is_of = |actor: &Option<PrincipalRef>| {
            actor.as_ref().is_none_or(|actor| *actor == request.subject)
        };
        let overrides: Vec<_> = self
            .overrides
            .values()
            .filter(|lifting| lifting.action == *action)
            .filter(|lifting| is_of(&lifting.actor_id))
            .cloned()
            .collect();
        let is_seen = |id: &EntityRef| {
            let lifts = overrides.iter().flat_map(|lifting| &lifting.lifts);
            drifts.iter().flat_map(|drift| &drift.until_fresh).any(|seen| seen.anchor_id == *id)
                || lifts.flat_map(|lifted| &lifted.found).any(|found| found.anchor_id == *id)
        };
        let anchors = self
            .anchors
            .values()
            .filter(|anchor| covered(&anchor.grounds_actions, action) || is_seen(&anchor.id));
        let anchors: Vec<_> = anchors.map(|anchor| Arc::new(self.observed(anchor))).collect();
        if anchors.is_empty() && drifts.is_empty() {
            return Arc::clone(&self.nothing);
        }
        Arc::new(Reality { anchors, overrides, drifts })
    }

    fn observed(&self, anchor: &Anchor) -> Anchor {
        let anchor = anchor.clone();
        match self.heads.get(&anchor.id) {
            Some(head) => head.observe(anchor),
            None => anchor,
        }
    }
}

/// The newest counted snapshot of an anchor.
pub struct AnchorHead {
    pub(super) newest: Option<Snapshot>,
    pub(super) changed_at: DateTime<Utc>,
}

impl AnchorHead {
    /// Returns the anchor with its newest snapshot.
    pub fn observe(&self, anchor: Anchor) -> Anchor {
        let changed_at = anchor.changed_at.max(self.changed_at);
        Anchor { newest: self.newest.clone(), changed_at, ..anchor }
    }
}
