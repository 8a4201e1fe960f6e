//! The deliveries that this node has claimed: waiting deliveries by endpoint, and running ones.
//!
//! This module uses neither the database nor the network.

mod line;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use authority_ids::{EndpointRef, TenantRef};
use tokio::time::Instant;

use super::{
    attempt::Ending,
    job::Job,
    places::{CLAIMED, Places, RUNNING},
    turns::{LANES, Turns},
};
use line::{FIRST, Line};

pub(super) struct Queue {
    lines: HashMap<EndpointRef, Line>,
    turns: Turns,
    running: Places,
    claimed: Places,
    /// Whether deliveries are due for endpoints that have no line here.
    others_wait: bool,
}

/// How many more deliveries may be claimed for each endpoint and lane.
#[derive(Clone, Default)]
pub(super) struct Rooms(HashMap<EndpointRef, [usize; LANES]>);

impl Rooms {
    pub(super) fn of(&self, endpoint_id: &EndpointRef) -> [usize; LANES] {
        self.0.get(endpoint_id).copied().unwrap_or([FIRST; LANES])
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            lines: HashMap::new(),
            turns: Turns::default(),
            running: Places::of(RUNNING),
            claimed: Places::of(CLAIMED),
            others_wait: false,
        }
    }

    pub(super) fn rooms(&self) -> Rooms {
        Rooms(self.lines.iter().map(|(id, line)| (id.clone(), line.room())).collect())
    }

    /// The places of deliveries that are claimed and not recorded yet.
    pub(super) fn claimed(&self) -> &Places {
        &self.claimed
    }

    /// Whether more deliveries should be claimed: an endpoint has more due deliveries, but its
    /// queue here is short or empty.
    pub(super) fn is_hungry(&self) -> bool {
        let is_hungry = || self.others_wait || self.lines.values().any(Line::is_hungry);
        !self.claimed.are_full() && is_hungry()
    }

    /// Adds claimed deliveries. The endpoints in `more` have further due deliveries.
    ///
    /// Returns the deliveries that cannot be sent now, because their endpoint is stopped.
    pub(super) fn take(
        &mut self,
        jobs: Vec<Job>,
        more: &HashSet<EndpointRef>,
        now: Instant,
    ) -> Vec<Arc<Job>> {
        let mut refused = Vec::new();
        for job in jobs {
            self.claimed.add(&job.place);
            let line = self.lines.entry(job.place.endpoint_id.clone());
            let line = line.or_insert_with(|| Line::of(&job, now));
            line.learn(&job, now);
            if line.is_stopped() {
                refused.push(Arc::new(job));
            } else {
                line.push(Arc::new(job));
            }
        }
        for (id, line) in &mut self.lines {
            line.has_more = more.contains(id);
        }
        self.others_wait = more.iter().any(|id| !self.lines.contains_key(id));
        let candidates = self.lines.values().map(|line| &line.candidate);
        self.turns.forget(candidates);
        self.lines.retain(|_, line| line.is_of_use(now));
        refused
    }

    /// Returns the next delivery to send and counts it as running.
    pub(super) fn next(&mut self, now: Instant) -> Option<Arc<Job>> {
        let ready = self.lines.iter().filter(|(_, line)| line.may_start(now));
        let ready = ready.map(|(id, line)| (id, &line.candidate));
        let (id, lane) = self.turns.next(&ready, &self.running)?;
        let id = id.clone();
        let job = self.lines.get_mut(&id)?.start(lane, now)?;
        self.running.add(&job.place);
        Some(job)
    }

    /// Returns the endpoints and tenants that have reached their own limits.
    pub(super) fn at_limits(&self, now: Instant) -> HashSet<String> {
        let is_at_limit =
            |line: &Line| line.is_paced(now) || self.running.are_of_endpoint(&line.candidate.place);
        let endpoints = self.lines.iter().filter(|(_, line)| is_at_limit(line));
        let endpoints = endpoints.map(|(id, _)| id.as_str());
        let tenants = self.running.full_tenants().map(TenantRef::as_str);
        endpoints.chain(tenants).map(str::to_owned).collect()
    }

    /// Returns the earliest time at which an endpoint may continue after its rate limit's pause.
    pub(super) fn paced_until(&self, now: Instant) -> Option<Instant> {
        let held = self.lines.values().filter(|line| !line.is_stopped() && line.count() > 0);
        let pauses = held.map(|line| line.pause(now)).filter(|pause| !pause.is_zero());
        pauses.min().map(|pause| now + pause)
    }

    /// Removes the deliveries with a lease that ends too soon for an attempt.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<Arc<Job>> {
        let mut found = Vec::new();
        for line in self.lines.values_mut() {
            for lane in 0..LANES {
                found.extend(std::iter::from_fn(|| line.pop_overdue(lane, now)));
            }
        }
        found
    }

    /// Handles the end of an attempt.
    ///
    /// If the result stops the endpoint until it is recorded, removes and returns the endpoint's
    /// waiting deliveries.
    pub(super) fn ended(
        &mut self,
        job: &Job,
        ending: &Ending,
        took: Duration,
        now: Instant,
    ) -> Option<Vec<Arc<Job>>> {
        self.running.remove(&job.place);
        let Ending::Attempted(outcome) = ending else { return None };
        let line = self.lines.get_mut(&job.place.endpoint_id)?;
        line.note(outcome, took, now).then(|| line.empty())
    }

    /// Puts back a delivery that the rate limit delays by `pause`.
    ///
    /// Returns the delivery if its endpoint is stopped.
    pub(super) fn put_back(
        &mut self,
        job: Arc<Job>,
        pause: Duration,
        now: Instant,
    ) -> Option<Arc<Job>> {
        self.running.remove(&job.place);
        match self.lines.get_mut(&job.place.endpoint_id) {
            Some(line) if !line.is_stopped() => {
                line.hold(pause, now);
                line.push_front(job);
                None
            }
            _ => Some(job),
        }
    }

    /// Stops counting a delivery as running, without the result of an attempt.
    pub(super) fn left(&mut self, job: &Job) {
        self.running.remove(&job.place);
    }

    /// Removes all waiting deliveries of an endpoint.
    pub(super) fn release(&mut self, endpoint_id: &EndpointRef) -> Vec<Arc<Job>> {
        self.lines.get_mut(endpoint_id).map(Line::empty).unwrap_or_default()
    }

    /// Removes all waiting deliveries.
    pub(super) fn release_all(&mut self) -> Vec<Arc<Job>> {
        self.lines.values_mut().flat_map(Line::empty).collect()
    }

    /// Stops counting a delivery as claimed, because its result was recorded or never will be.
    pub(super) fn recorded(&mut self, job: &Job, has_stopped: bool) {
        self.claimed.remove(&job.place);
        if let Some(line) = self.lines.get_mut(&job.place.endpoint_id).filter(|_| has_stopped) {
            line.go_on();
        }
    }
}
