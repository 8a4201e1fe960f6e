//! Which decisions of a tenant become events.
//!
//! Permitted and denied decisions are too many to be events for nobody. An endpoint or stream that takes
//! them has a row in `event_demands`. It is part of the tenant's authority, so the fence holds back each
//! decision that was made without it: none that is made after it lacks its event.

use std::collections::BTreeMap;

use authority_decision::Decision;

pub(super) const ALLOWED: &str = "svc.decision.allowed";
pub(super) const DENIED: &str = "svc.decision.denied";

/// What a tenant's endpoints and streams demand, by their ids.
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

/// The decisions that become events although no request for approval tells of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DemandedEvents {
    pub(super) allowed: bool,
    pub(super) denied: bool,
}

impl DemandedEvents {
    /// Whether the decision becomes an event. A held one does not: the request for approval that it opens does.
    pub fn include(self, decision: Decision) -> bool {
        match decision {
            Decision::Allow | Decision::AllowWithConstraints => self.allowed,
            Decision::Deny => self.denied,
            Decision::RequireApproval => false,
        }
    }
}
