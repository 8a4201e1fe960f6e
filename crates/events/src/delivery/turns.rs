//! Whose deliveries go out next.
//!
//! Lanes share what a node sends by a fixed pattern, so that neither retries nor replays starve. Within a
//! lane tenants take turns, and within a tenant its endpoints do. Nobody has more in flight than its limit:
//! a receiver that does not answer occupies its own places and no others.

use std::collections::HashMap;

/// In flight, for each node.
const FOR_ENDPOINT: usize = 4;
const FOR_TENANT: usize = 16;
const FOR_HOST: usize = 32;
const FOR_NODE: usize = 256;

pub(super) const LANES: usize = 3;
/// The first of the lane's numbers that has something to send is served.
const PATTERN: [usize; 6] = [0, 0, 1, 0, 1, 2];

/// An endpoint with due deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) endpoint_id: String,
    pub(super) tenant_id: String,
    pub(super) host: String,
    /// How many are due in each lane, up to [`FOR_ENDPOINT`].
    pub(super) due: [usize; LANES],
}

/// Who occupies a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) endpoint_id: String,
    pub(super) tenant_id: String,
    pub(super) host: String,
}

/// What is in flight on this node.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    endpoints: HashMap<String, usize>,
    tenants: HashMap<String, usize>,
    hosts: HashMap<String, usize>,
    all: usize,
}

impl InFlight {
    pub(super) fn is_full(&self) -> bool {
        self.all >= FOR_NODE
    }

    pub(super) fn add(&mut self, place: &Place) {
        for (counts, name) in self.counts(place) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
        self.all += 1;
    }

    pub(super) fn remove(&mut self, place: &Place) {
        for (counts, name) in self.counts(place) {
            if let Some(count) = counts.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(name);
                }
            }
        }
        self.all -= 1;
    }

    fn counts<'a>(&mut self, place: &'a Place) -> [(&mut HashMap<String, usize>, &'a str); 3] {
        [
            (&mut self.endpoints, &place.endpoint_id),
            (&mut self.tenants, &place.tenant_id),
            (&mut self.hosts, &place.host),
        ]
    }

    fn has_room(&self, candidate: &Candidate) -> bool {
        let of = |counts: &HashMap<String, usize>, name: &str| {
            counts.get(name).copied().unwrap_or_default()
        };
        of(&self.endpoints, &candidate.endpoint_id) < FOR_ENDPOINT
            && of(&self.tenants, &candidate.tenant_id) < FOR_TENANT
            && of(&self.hosts, &candidate.host) < FOR_HOST
    }
}

/// How many deliveries of an endpoint's lane to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) endpoint_id: String,
    pub(super) lane: usize,
    pub(super) count: usize,
}

/// Where the turns stand; kept from round to round.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pattern: usize,
    /// The last turn of each; who never had one comes first.
    number: u64,
    tenants: HashMap<String, u64>,
    endpoints: HashMap<String, u64>,
}

impl Turns {
    /// Divides the free places among the candidates, which are changed.
    pub(super) fn divide(
        &mut self,
        candidates: &mut [Candidate],
        in_flight: &InFlight,
    ) -> Vec<Share> {
        let mut in_flight = in_flight.clone();
        let mut shares: Vec<Share> = Vec::new();
        self.forget(candidates);
        while !in_flight.is_full() {
            let Some((index, lane)) = self.next(candidates, &in_flight) else { break };
            let candidate = &mut candidates[index];
            candidate.due[lane] -= 1;
            let place = Place {
                endpoint_id: candidate.endpoint_id.clone(),
                tenant_id: candidate.tenant_id.clone(),
                host: candidate.host.clone(),
            };
            in_flight.add(&place);
            self.number += 1;
            self.tenants.insert(place.tenant_id, self.number);
            self.endpoints.insert(place.endpoint_id.clone(), self.number);
            let endpoint_id = place.endpoint_id;
            match shares.iter_mut().find(|s| s.lane == lane && s.endpoint_id == endpoint_id) {
                Some(share) => share.count += 1,
                None => shares.push(Share { endpoint_id, lane, count: 1 }),
            }
        }
        shares
    }

    /// The next candidate, and its lane: the one whose lane has the turn, and whose tenant waits longest.
    fn next(&mut self, candidates: &[Candidate], in_flight: &InFlight) -> Option<(usize, usize)> {
        let lane = PATTERN[self.pattern % PATTERN.len()];
        let others = (0..LANES).filter(|other| *other != lane);
        let found = std::iter::once(lane).chain(others).find_map(|lane| {
            let ready = candidates
                .iter()
                .enumerate()
                .filter(|(_, candidate)| candidate.due[lane] > 0 && in_flight.has_room(candidate));
            let turn = |turns: &HashMap<String, u64>, name: &str| turns.get(name).copied();
            let longest = ready.min_by_key(|(_, candidate)| {
                (
                    turn(&self.tenants, &candidate.tenant_id),
                    turn(&self.endpoints, &candidate.endpoint_id),
                )
            });
            longest.map(|(index, _)| (index, lane))
        })?;
        self.pattern = self.pattern.wrapping_add(1);
        Some(found)
    }

    /// Keeps the turns only of who waits.
    fn forget(&mut self, candidates: &[Candidate]) {
        if self.endpoints.len() > 2 * candidates.len() + 1024 {
            self.endpoints.retain(|id, _| candidates.iter().any(|one| one.endpoint_id == *id));
            self.tenants.retain(|id, _| candidates.iter().any(|one| one.tenant_id == *id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(endpoint: &str, tenant: &str, host: &str, due: [usize; LANES]) -> Candidate {
        let (endpoint_id, tenant_id) = (endpoint.to_owned(), tenant.to_owned());
        Candidate { endpoint_id, tenant_id, host: host.to_owned(), due }
    }

    fn count(shares: &[Share], wanted: impl Fn(&Share) -> bool) -> usize {
        shares.iter().filter(|share| wanted(share)).map(|share| share.count).sum()
    }

    #[test]
    fn nobody_has_more_in_flight_than_its_limit() {
        let mut all: Vec<_> = (0..10)
            .map(|n| candidate(&format!("a{n}"), "a", &format!("h{n}"), [9, 9, 9]))
            .collect();
        let shares = Turns::default().divide(&mut all, &InFlight::default());
        assert_eq!(count(&shares, |_| true), FOR_TENANT);
        assert!((0..10).all(|n| count(&shares, |s| s.endpoint_id == format!("a{n}")) <= 4));

        let mut all: Vec<_> = (0..20)
            .map(|n| candidate(&format!("e{n}"), &format!("t{n}"), "one", [9, 0, 0]))
            .collect();
        let shares = Turns::default().divide(&mut all, &InFlight::default());
        assert_eq!(count(&shares, |_| true), FOR_HOST);

        let mut all: Vec<_> = (0..100)
            .map(|n| candidate(&format!("e{n}"), &format!("t{n}"), &format!("h{n}"), [4, 0, 0]))
            .collect();
        let shares = Turns::default().divide(&mut all, &InFlight::default());
        assert_eq!(count(&shares, |_| true), FOR_NODE);
        assert!(all.iter().all(|one| one.due[0] <= 2), "in turn by tenant");
    }

    #[test]
    fn each_lane_gets_its_share_even_of_single_places() {
        let mut turns = Turns::default();
        let mut busy = InFlight::default();
        let of = |endpoint: &str| Place {
            endpoint_id: endpoint.to_owned(),
            tenant_id: "a".to_owned(),
            host: "h".to_owned(),
        };
        for _ in 0..3 {
            busy.add(&of("e"));
        }
        let mut served = [0; LANES];
        for _ in 0..60 {
            let shares = turns.divide(&mut [candidate("e", "a", "h", [4, 4, 4])], &busy);
            assert_eq!(count(&shares, |_| true), 1);
            served[shares[0].lane] += 1;
        }
        assert_eq!(served, [30, 20, 10]);
        let shares = turns.divide(&mut [candidate("e", "a", "h", [0, 0, 4])], &busy);
        assert_eq!(shares[0].lane, 2, "a lane without anything to send leaves its place");
    }

    #[test]
    fn a_tenant_with_many_endpoints_gets_no_more_than_others() {
        let mut turns = Turns::default();
        let mut busy = InFlight::default();
        for n in 0..FOR_NODE - 10 {
            busy.add(&Place {
                endpoint_id: format!("x{n}"),
                tenant_id: format!("x{n}"),
                host: format!("x{n}"),
            });
        }
        let mut all: Vec<_> = (0..12)
            .map(|n| candidate(&format!("a{n}"), "a", &format!("h{n}"), [4, 0, 0]))
            .chain([candidate("b", "b", "hb", [4, 0, 0]), candidate("c", "c", "hc", [4, 0, 0])])
            .collect();
        let shares = turns.divide(&mut all, &busy);
        assert_eq!(count(&shares, |s| s.endpoint_id.starts_with('a')), 4);
        assert_eq!(count(&shares, |s| s.endpoint_id == "b"), 3);
        assert_eq!(count(&shares, |s| s.endpoint_id == "c"), 3);
    }

    #[test]
    fn what_ends_leaves_its_place() {
        let mut busy = InFlight::default();
        let place =
            Place { endpoint_id: "e".to_owned(), tenant_id: "t".to_owned(), host: "h".to_owned() };
        for _ in 0..FOR_ENDPOINT {
            busy.add(&place);
        }
        let waiting = || vec![candidate("e", "t", "h", [4, 0, 0])];
        assert!(Turns::default().divide(&mut waiting(), &busy).is_empty());
        busy.remove(&place);
        assert_eq!(count(&Turns::default().divide(&mut waiting(), &busy), |_| true), 1);
        for _ in 1..FOR_ENDPOINT {
            busy.remove(&place);
        }
        assert!(busy.endpoints.is_empty() && busy.tenants.is_empty() && busy.hosts.is_empty());
    }
}
