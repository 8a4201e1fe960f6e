//! An endpoint's deliveries on this node, and what is known of the endpoint here.

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

/// For so long an endpoint's claimed deliveries should keep its places busy.
const AHEAD: Duration = Duration::from_millis(250);
/// Claimed and waiting, of an endpoint's lane.
const MOST: usize = 64;
/// The same while nothing is known of how fast it answers.
pub(super) const FIRST: usize = 8;
/// How long a line still counts as paced after the rate limit's pause.
const MOMENT: Duration = Duration::from_millis(100);
/// What is known of an endpoint is kept for so long.
const KEPT: Duration = Duration::from_secs(60);

/// An endpoint's deliveries.
pub(super) struct Line {
    /// How many wait.
    pub(super) candidate: Candidate,
    waiting: [VecDeque<Arc<Job>>; LANES],
    pace: Pace,
    /// By its rate limit: when it would be idle.
    paced_until: Instant,
    per_second: usize,
    /// How long its attempts take, on average.
    takes: Option<Duration>,
    /// In a row.
    failures: u32,
    /// Failures that stop it and are not recorded yet.
    stops: usize,
    /// More are due than could be claimed.
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

    /// The endpoint as it was when this was claimed.
    pub(super) fn learn(&mut self, job: &Job, now: Instant) {
        self.pace = Pace::of(job.per_second);
        self.per_second = usize::try_from(job.per_second).unwrap_or_default();
        self.failures = self.failures.max(job.failures);
        self.used = now;
        // Its path or port may be another one; its tenant is not.
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

    /// Whether its rate limit stops it from sending, or did so a moment ago.
    pub(super) fn is_paced(&self, now: Instant) -> bool {
        self.count() > 0 && now < self.paced_until + MOMENT
    }

    /// Nothing starts for a while.
    pub(super) fn hold(&mut self, pause: Duration, now: Instant) {
        let lead = self.pace.lead(pause).to_std().unwrap_or_default();
        self.paced_until = self.paced_until.max(now + lead);
    }

    /// How many may wait in a lane: what its places take in a moment, and its rate limit in a second.
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

    /// An attempt ended so. Whether it keeps others from being sent: as far as this node knows, the breaker opens, or
    /// the endpoint wants to be left alone.
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

    /// A failure that stopped it is recorded: from now on the database's breaker tells.
    pub(super) fn go_on(&mut self) {
        self.stops -= 1;
        self.failures = 0;
    }

    /// Whether a failure stops it.
    pub(super) fn is_stopped(&self) -> bool {
        self.stops > 0
    }
}
