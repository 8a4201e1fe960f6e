//! Rows of `event_demands`: which on-demand events an endpoint or a stream subscribes to.

use authority_model::schema::event_demands;
use diesel::prelude::*;

use super::{
    authority::{Authority, Owned},
    demanded_events::{DECISION_ALLOWED, DECISION_DENIED, DemandedEvents},
    tenant::TenantGraph,
};

/// A row of `event_demands`.
#[derive(Queryable, Selectable)]
#[diesel(table_name = event_demands)]
pub(super) struct EventDemand {
    id: String,
    tenant_id: String,
    event_types: Vec<String>,
}

impl Owned for EventDemand {
    fn tenant_id(&self) -> &str {
        &self.tenant_id
    }
}

impl Authority for EventDemand {
    fn put(self, graph: &mut TenantGraph) {
        let demands = |name: &str| self.event_types.iter().any(|demanded| demanded == name);
        let demanded =
            DemandedEvents { allowed: demands(DECISION_ALLOWED), denied: demands(DECISION_DENIED) };
        graph.event_demands.put(self.id, demanded);
    }

    fn remove(graph: &mut TenantGraph, id: &str) {
        graph.event_demands.remove(id);
    }
}
