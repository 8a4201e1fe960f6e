//! Determines which decisions of a tenant become events.
//!
//! There are too many permitted and denied decisions to create an event for each. They become
//! events only if an endpoint or a stream subscribes to them, which creates a row in
//! `event_demands`. The row is part of the tenant's authority: the fence rejects a decision that
//! was made without it, and the decision is made again. Every decision that is recorded after the
//! row therefore has its event.

use std::collections::BTreeMap;

use authority_decision::Decision;

/// The type of the event of a permitted decision.
pub const DECISION_ALLOWED: &str = "svc.decision.allowed";
/// The type of the event of a denied decision.
pub const DECISION_DENIED: &str = "svc.decision.denied";

/// The events that a tenant's endpoints and streams subscribe to, by endpoint or stream id.
#[derive(Default)]
pub(super) struct EventDemands(BTreeMap<String, DemandedEvents>);

impl EventDemands {
    pub(super) fn put(&mut self, id: String, demanded: DemandedEvents) {
        self.0.insert(id, demanded);
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    pub(super) fn all(&self) -> DemandedEvents {
        let nothing = DemandedEvents::default();
        self.0.values().fold(nothing, |all, one| DemandedEvents {
            allowed: all.allowed || one.allowed,
            denied: all.denied || one.denied,
        })
    }
}

/// The decisions that become events even without a request for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DemandedEvents {
    pub(super) allowed: bool,
    pub(super) denied: bool,
}

impl DemandedEvents {
    /// Whether the decision becomes an event. A held decision does not, because its request for
    /// approval becomes an event.
    pub fn include(self, decision: Decision) -> bool {
        match decision {
            Decision::Allow | Decision::AllowWithConstraints => self.allowed,
            Decision::Deny => self.denied,
            Decision::RequireApproval => false,
        }
    }
}
