//! Counts the deliveries that a node handles for each endpoint, tenant and host.

use std::{collections::HashMap, hash::Hash, time::Duration};

use authority_ids::{EndpointRef, TenantRef};

/// The most deliveries for each endpoint, tenant and host, and in total on this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) endpoint: usize,
    pub(super) tenant: usize,
    pub(super) host: usize,
    pub(super) node: usize,
}

/// The limits for running attempts. A receiver that does not answer uses up only its own limits.
pub(super) const RUNNING: Limits = Limits { endpoint: 4, tenant: 16, host: 32, node: 256 };
/// The limits for deliveries that are claimed and not recorded yet. `queue/line.rs` limits how many
/// deliveries of one endpoint wait.
pub(super) const CLAIMED: Limits =
    Limits { endpoint: usize::MAX, tenant: 512, host: usize::MAX, node: 1024 };

/// Records the duration of a request to a receiver as a metric.
pub(super) fn count_held(kind: &'static str, held: Duration) {
    metrics::histogram!("authority_webhook_place_seconds", "kind" => kind).record(held);
}

/// The endpoint, tenant and host that a delivery counts towards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveryPlace {
    pub(super) endpoint_id: EndpointRef,
    pub(super) tenant_id: TenantRef,
    pub(super) host: String,
}

/// Counts of deliveries, with their limits.
#[derive(Clone, Debug)]
pub(super) struct Places {
    limits: Limits,
    endpoints: HashMap<EndpointRef, usize>,
    tenants: HashMap<TenantRef, usize>,
    hosts: HashMap<String, usize>,
    all: usize,
}

impl Places {
    pub(super) fn of(limits: Limits) -> Self {
        Self {
            limits,
            endpoints: HashMap::new(),
            tenants: HashMap::new(),
            hosts: HashMap::new(),
            all: 0,
        }
    }

    pub(super) fn are_full(&self) -> bool {
        self.all >= self.limits.node
    }

    pub(super) fn have_room(&self, place: &DeliveryPlace) -> bool {
        let DeliveryPlace { endpoint_id, tenant_id, host } = place;
        count(&self.endpoints, endpoint_id) < self.limits.endpoint
            && count(&self.tenants, tenant_id) < self.limits.tenant
            && count(&self.hosts, host) < self.limits.host
    }

    /// Whether the endpoint is at its limit, or was until an attempt ended a moment ago.
    pub(super) fn are_of_endpoint(&self, place: &DeliveryPlace) -> bool {
        count(&self.endpoints, &place.endpoint_id) + 1 >= self.limits.endpoint
    }

    /// Returns the tenants that are at their limit, or were until an attempt ended a moment ago.
    pub(super) fn full_tenants(&self) -> impl Iterator<Item = &TenantRef> {
        let is_full = |held: usize| held + 1 >= self.limits.tenant;
        self.tenants.iter().filter(move |(_, held)| is_full(**held)).map(|(id, _)| id)
    }

    pub(super) fn add(&mut self, place: &DeliveryPlace) {
        raise(&mut self.endpoints, &place.endpoint_id);
        raise(&mut self.tenants, &place.tenant_id);
        raise(&mut self.hosts, &place.host);
        self.all += 1;
    }

    pub(super) fn remove(&mut self, place: &DeliveryPlace) {
        lower(&mut self.endpoints, &place.endpoint_id);
        lower(&mut self.tenants, &place.tenant_id);
        lower(&mut self.hosts, &place.host);
        self.all -= 1;
    }
}

fn count<K: Eq + Hash>(counts: &HashMap<K, usize>, name: &K) -> usize {
    counts.get(name).copied().unwrap_or(0)
}

fn raise<K: Clone + Eq + Hash>(counts: &mut HashMap<K, usize>, name: &K) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.clone(), 1)),
    }
}

fn lower<K: Eq + Hash>(counts: &mut HashMap<K, usize>, name: &K) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_leaves_its_place() {
        let mut running = Places::of(RUNNING);
        let place =
            DeliveryPlace { endpoint_id: "e".into(), tenant_id: "t".into(), host: "h".to_owned() };
        for _ in 0..RUNNING.endpoint {
            assert!(running.have_room(&place));
            running.add(&place);
        }
        assert!(!running.have_room(&place));
        running.remove(&place);
        assert!(running.have_room(&place));
        for _ in 1..RUNNING.endpoint {
            running.remove(&place);
        }
        let empty = running.endpoints.is_empty() && running.tenants.is_empty();
        assert!(empty && running.hosts.is_empty() && running.all == 0);
    }
}
