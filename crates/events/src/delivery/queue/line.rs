//! The claimed deliveries of one endpoint on this node, and the endpoint's state.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use authority_webhook::retry::{EndpointNext, FAILURES_TO_OPEN};
use chrono::TimeDelta;
use tokio::time::Instant;

use super::super::{
    attempt::Outcome,
    job::Job,
    pace::Pace,
    places::RUNNING,
    turns::{Candidate, LANES},
};

/// How long the waiting deliveries should keep an endpoint busy until more are claimed.
const AHEAD: Duration = Duration::from_millis(250);
/// The most waiting deliveries in a lane of an endpoint.
const MOST: usize = 64;
/// The same limit while the endpoint's response time is unknown.
pub(super) const FIRST: usize = 8;
/// How long an endpoint still counts as paced after its rate limit's pause.
const MOMENT: Duration = Duration::from_millis(100);
/// How long an idle endpoint's state is kept.
const KEPT: Duration = Duration::from_secs(60);

/// The waiting deliveries of an endpoint and the endpoint's state.
pub(super) struct Line {
    /// The endpoint's ids and host, and the number of waiting deliveries in each lane.
    pub(super) candidate: Candidate,
    waiting: [VecDeque<Arc<Job>>; LANES],
    pace: Pace,
    /// The current time plus the lead of [`Pace`].
    paced_until: Instant,
    per_second: usize,
    /// The average duration of the endpoint's attempts.
    takes: Option<Duration>,
    /// The number of consecutive failures.
    failures: u32,
    /// The number of failures that stop the endpoint and are not recorded yet.
    stops: usize,
    /// Whether more deliveries are due than could be claimed.
    pub(super) has_more: bool,
    used: Instant,
}

impl Line {
    pub(super) fn of(job: &Job, now: Instant) -> Self {
        Self {
            candidate: Candidate { place: (*job.place).clone(), due: [0; LANES] },
            waiting: Default::default(),
            pace: Pace::of(job.per_second),
            paced_until: now,
            per_second: 0,
            takes: None,
            failures: 0,
            stops: 0,
            has_more: false,
            used: now,
        }
    }

    /// Updates the endpoint's state from a claimed delivery.
    pub(super) fn learn(&mut self, job: &Job, now: Instant) {
        self.pace = Pace::of(job.per_second);
        self.per_second = usize::try_from(job.per_second).unwrap_or_default();
        self.failures = self.failures.max(job.failures);
        self.used = now;
        // The endpoint's host may have changed; its tenant cannot.
        self.candidate.place.host.clone_from(&job.place.host);
    }

    pub(super) fn push(&mut self, job: Arc<Job>) {
        self.candidate.due[job.lane] += 1;
        self.waiting[job.lane].push_back(job);
    }

    pub(super) fn push_front(&mut self, job: Arc<Job>) {
        self.candidate.due[job.lane] += 1;
        self.waiting[job.lane].push_front(job);
    }

    fn pop(&mut self, lane: usize) -> Option<Arc<Job>> {
        let job = self.waiting[lane].pop_front()?;
        self.candidate.due[lane] -= 1;
        Some(job)
    }

    pub(super) fn pop_overdue(&mut self, lane: usize, now: Instant) -> Option<Arc<Job>> {
        self.waiting[lane].front().filter(|job| job.is_overdue(now))?;
        self.pop(lane)
    }

    pub(super) fn empty(&mut self) -> Vec<Arc<Job>> {
        self.candidate.due = [0; LANES];
        self.waiting.iter_mut().flat_map(std::mem::take).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.candidate.due.iter().sum()
    }

    pub(super) fn may_start(&self, now: Instant) -> bool {
        !self.is_stopped() && self.pause(now).is_zero()
    }

    pub(super) fn start(&mut self, lane: usize, now: Instant) -> Option<Arc<Job>> {
        let lead = self.pace.admit(self.lead(now)).unwrap_or_default();
        self.paced_until = now + lead.to_std().unwrap_or_default();
        self.pop(lane)
    }

    fn lead(&self, now: Instant) -> TimeDelta {
        let lead = self.paced_until.saturating_duration_since(now);
        TimeDelta::from_std(lead).unwrap_or_default()
    }

    pub(super) fn pause(&self, now: Instant) -> Duration {
        self.pace.pause(self.lead(now))
    }

    /// Whether the rate limit delays the endpoint's deliveries, or did so a moment ago.
    pub(super) fn is_paced(&self, now: Instant) -> bool {
        self.count() > 0 && now < self.paced_until + MOMENT
    }

    /// Prevents attempts from starting for `pause`.
    pub(super) fn hold(&mut self, pause: Duration, now: Instant) {
        let lead = self.pace.lead(pause).to_std().unwrap_or_default();
        self.paced_until = self.paced_until.max(now + lead);
    }

    /// The most deliveries that may wait in a lane.
    ///
    /// As many as the endpoint's concurrent attempts handle within [`AHEAD`], but at most one
    /// second's rate limit.
    fn most(&self) -> usize {
        let by_speed = self.takes.map_or(FIRST, |takes| {
            let each = takes.as_micros().max(1);
            let many = AHEAD.as_micros() * RUNNING.endpoint as u128 / each;
            usize::try_from(many).unwrap_or(MOST)
        });
        by_speed.min(self.per_second).clamp(RUNNING.endpoint, MOST)
    }

    pub(super) fn room(&self) -> [usize; LANES] {
        if self.is_stopped() {
            return [0; LANES];
        }
        let most = self.most();
        self.candidate.due.map(|waiting| most.saturating_sub(waiting))
    }

    pub(super) fn is_hungry(&self) -> bool {
        self.has_more && !self.is_stopped() && self.count() * 2 <= self.most()
    }

    pub(super) fn is_of_use(&self, now: Instant) -> bool {
        self.count() > 0 || self.is_stopped() || now.duration_since(self.used) < KEPT
    }

    /// Records the outcome of an attempt. Returns whether it stops other attempts.
    ///
    /// An attempt stops the others if its failure opens the breaker, as far as this node knows, or
    /// if the response pauses or disables the endpoint.
    pub(super) fn note(&mut self, outcome: &Outcome, took: Duration, now: Instant) -> bool {
        self.used = now;
        self.takes = Some(self.takes.map_or(took, |takes| (takes * 7 + took) / 8));
        if outcome.answer.succeeded() {
            self.failures = 0;
            return false;
        }
        self.failures += 1;
        let stops = self.failures >= FAILURES_TO_OPEN
            || outcome.answer.endpoint() != EndpointNext::Unchanged;
        self.stops += usize::from(stops);
        stops
    }

    /// Resumes after a failure that stopped the endpoint was recorded. From then on, the breaker in
    /// the database decides.
    pub(super) fn go_on(&mut self) {
        self.stops -= 1;
        self.failures = 0;
    }

    /// Whether a failure that is not recorded yet stops the endpoint.
    pub(super) fn is_stopped(&self) -> bool {
        self.stops > 0
    }
}
