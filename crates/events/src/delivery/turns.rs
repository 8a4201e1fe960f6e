//! Determines which deliveries are claimed next, and which are sent next.
//!
//! Lanes share a node's capacity by a fixed pattern, which keeps retries and replays from starving.
//! Tenants take turns within a lane, and endpoints take turns within a tenant.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use authority_ids::{EndpointRef, TenantRef};

use super::places::{DeliveryPlace, Places};

pub(super) const LANES: usize = 3;
/// The lane of each turn. If that lane has no delivery to send, another lane is served.
const PATTERN: [usize; 6] = [0, 0, 1, 0, 1, 2];

/// An endpoint with deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) place: DeliveryPlace,
    /// The number of due deliveries in each lane.
    pub(super) due: [usize; LANES],
}

/// How many deliveries of an endpoint's lane to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) endpoint_id: EndpointRef,
    pub(super) lane: usize,
    pub(super) count: usize,
}

/// The state of the turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pattern: usize,
    /// The number of the last turn. `tenants` and `endpoints` have the last turn of each tenant and
    /// endpoint. A tenant or endpoint without a turn comes first.
    number: u64,
    tenants: HashMap<TenantRef, u64>,
    endpoints: HashMap<EndpointRef, u64>,
}

impl Turns {
    /// Divides the free capacity among the candidates. Subtracts the shares from the candidates'
    /// due deliveries.
    pub(super) fn divide(
        &mut self,
        candidates: &mut [Candidate],
        mut occupied: Places,
    ) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        while let Some((index, lane)) = self.next(&candidates.iter().enumerate(), &occupied) {
            let candidate = &mut candidates[index];
            candidate.due[lane] -= 1;
            occupied.add(&candidate.place);
            let endpoint_id = &candidate.place.endpoint_id;
            match shares.iter_mut().find(|s| s.lane == lane && s.endpoint_id == *endpoint_id) {
                Some(share) => share.count += 1,
                None => shares.push(Share { endpoint_id: endpoint_id.clone(), lane, count: 1 }),
            }
        }
        shares
    }

    /// Takes the next turn. Returns the candidate's name and its lane.
    ///
    /// In the lane of the turn, the tenant that has waited longest is next. Within the tenant, the
    /// endpoint that has waited longest is next.
    pub(super) fn next<'c, N: Copy>(
        &mut self,
        candidates: &(impl Iterator<Item = (N, &'c Candidate)> + Clone),
        occupied: &Places,
    ) -> Option<(N, usize)> {
        if occupied.are_full() {
            return None;
        }
        let lane = PATTERN[self.pattern % PATTERN.len()];
        let others = (0..LANES).filter(|other| *other != lane);
        let (name, next, lane) = std::iter::once(lane).chain(others).find_map(|lane| {
            let ready = candidates.clone().filter(|(_, candidate)| {
                candidate.due[lane] > 0 && occupied.have_room(&candidate.place)
            });
            let longest = ready.min_by_key(|(_, Candidate { place, .. })| {
                (self.tenants.get(&place.tenant_id), self.endpoints.get(&place.endpoint_id))
            });
            longest.map(|(name, candidate)| (name, candidate, lane))
        })?;
        self.pattern = self.pattern.wrapping_add(1);
        self.number += 1;
        note(&mut self.tenants, &next.place.tenant_id, self.number);
        note(&mut self.endpoints, &next.place.endpoint_id, self.number);
        Some((name, lane))
    }

    /// Forgets the turns of endpoints and tenants without waiting deliveries, if there are many.
    pub(super) fn forget<'c>(&mut self, candidates: impl Iterator<Item = &'c Candidate>) {
        let places: Vec<&DeliveryPlace> = candidates.map(|candidate| &candidate.place).collect();
        if self.endpoints.len() > 2 * places.len() + 1024 {
            let endpoints: HashSet<&EndpointRef> =
                places.iter().map(|one| &one.endpoint_id).collect();
            let tenants: HashSet<&TenantRef> = places.iter().map(|one| &one.tenant_id).collect();
            self.endpoints.retain(|id, _| endpoints.contains(id));
            self.tenants.retain(|id, _| tenants.contains(id));
        }
    }
}

fn note<K: Clone + Eq + Hash>(turns: &mut HashMap<K, u64>, name: &K, number: u64) {
    match turns.get_mut(name) {
        Some(last) => *last = number,
        None => drop(turns.insert(name.clone(), number)),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::places::{CLAIMED, RUNNING},
        *,
    };

    fn place(endpoint: &str, tenant: &str, host: &str) -> DeliveryPlace {
        let (endpoint_id, tenant_id) = (endpoint.into(), tenant.into());
        DeliveryPlace { endpoint_id, tenant_id, host: host.to_owned() }
    }

    fn candidate(endpoint: &str, tenant: &str, host: &str, due: [usize; LANES]) -> Candidate {
        Candidate { place: place(endpoint, tenant, host), due }
    }

    fn running() -> Places {
        Places::of(RUNNING)
    }

    fn count(shares: &[Share], wanted: impl Fn(&Share) -> bool) -> usize {
        shares.iter().filter(|share| wanted(share)).map(|share| share.count).sum()
    }

    #[test]
    fn nobody_has_more_than_its_limit() {
        let mut all: Vec<_> = (0..10)
            .map(|n| candidate(&format!("a{n}"), "a", &format!("h{n}"), [9, 9, 9]))
            .collect();
        let shares = Turns::default().divide(&mut all, running());
        assert_eq!(count(&shares, |_| true), RUNNING.tenant);
        assert!((0..10).all(|n| count(&shares, |s| s.endpoint_id == *format!("a{n}")) <= 4));

        let mut all: Vec<_> = (0..20)
            .map(|n| candidate(&format!("e{n}"), &format!("t{n}"), "one", [9, 0, 0]))
            .collect();
        let shares = Turns::default().divide(&mut all, running());
        assert_eq!(count(&shares, |_| true), RUNNING.host);

        let all = |most| -> Vec<_> {
            (0..100)
                .map(|n| {
                    candidate(&format!("e{n}"), &format!("t{n}"), &format!("h{n}"), [most, 0, 0])
                })
                .collect()
        };
        let mut few = all(4);
        let shares = Turns::default().divide(&mut few, running());
        assert_eq!(count(&shares, |_| true), RUNNING.node);
        assert!(few.iter().all(|one| one.due[0] <= 2), "in turn by tenant");
        let shares = Turns::default().divide(&mut all(64), Places::of(CLAIMED));
        assert_eq!(count(&shares, |_| true), CLAIMED.node);
        assert!(shares.iter().all(|share| share.count <= 11), "in turn by tenant");
    }

    #[test]
    fn each_lane_gets_its_share_even_of_single_places() {
        let mut turns = Turns::default();
        let mut busy = running();
        for _ in 0..3 {
            busy.add(&place("e", "a", "h"));
        }
        let mut served = [0; LANES];
        for _ in 0..60 {
            let shares = turns.divide(&mut [candidate("e", "a", "h", [4, 4, 4])], busy.clone());
            assert_eq!(count(&shares, |_| true), 1);
            served[shares[0].lane] += 1;
        }
        assert_eq!(served, [30, 20, 10]);
        let shares = turns.divide(&mut [candidate("e", "a", "h", [0, 0, 4])], busy);
        assert_eq!(shares[0].lane, 2, "a lane without anything to send leaves its place");
    }

    #[test]
    fn a_tenant_with_many_endpoints_gets_no_more_than_others() {
        let mut turns = Turns::default();
        let mut busy = running();
        for n in 0..RUNNING.node - 10 {
            let name = format!("x{n}");
            busy.add(&place(&name, &name, &name));
        }
        let mut all: Vec<_> = (0..12)
            .map(|n| candidate(&format!("a{n}"), "a", &format!("h{n}"), [4, 0, 0]))
            .chain([candidate("b", "b", "hb", [4, 0, 0]), candidate("c", "c", "hc", [4, 0, 0])])
            .collect();
        let shares = turns.divide(&mut all, busy);
        assert_eq!(count(&shares, |s| s.endpoint_id.starts_with('a')), 4);
        assert_eq!(count(&shares, |s| s.endpoint_id == "b"), 3);
        assert_eq!(count(&shares, |s| s.endpoint_id == "c"), 3);
    }

    #[test]
    fn turns_of_who_is_gone_are_forgotten() {
        let mut turns = Turns::default();
        let name = |n: usize| format!("e{n}");
        for n in 0..1030 {
            turns.divide(&mut [candidate(&name(n), &name(n), "h", [1, 0, 0])], running());
        }
        let last = candidate(&name(1029), &name(1029), "h", [1, 0, 0]);
        turns.forget([&last].into_iter());
        assert_eq!((turns.endpoints.len(), turns.tenants.len()), (1, 1));
    }
}
