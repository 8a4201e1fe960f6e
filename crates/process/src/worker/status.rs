//! The state of each worker: the time of its last success, and whether it is late.

use std::{fmt::Display, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Worker;

/// The number of periods without a success after which a worker is late.
const PERIODS: u32 = 3;
/// The minimum time without a success after which a worker is late. A busy machine misses short
/// periods.
const LEAST: Duration = Duration::from_secs(5);

/// The workers of a supervisor. Clones share their state.
#[derive(Clone, Default)]
pub struct Statuses(Arc<Mutex<Vec<Arc<Status>>>>);

/// The state of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub name: &'static str,
    /// The time since the last successful run; `None` before the first.
    pub since_success: Option<Duration>,
    /// The problem with the worker, as a text for operators.
    pub fault: Option<String>,
    /// Whether the node is not ready while there is a fault.
    pub is_critical: bool,
}

pub(super) struct Status {
    name: &'static str,
    every: Option<Duration>,
    is_critical: bool,
    state: Mutex<State>,
}

struct State {
    started: Instant,
    succeeded: Option<Instant>,
    /// Consecutive failures.
    failures: u32,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The worker panicked or ended, and waits for its restart.
    Down,
    Stopped,
}

impl Statuses {
    /// Returns the state of each worker, from memory.
    pub fn reports(&self) -> Vec<Report> {
        self.0.lock().iter().map(|status| status.report()).collect()
    }

    pub(super) fn add(&self, worker: &Worker) -> Arc<Status> {
        let status = Arc::new(Status {
            name: worker.name,
            every: worker.every,
            is_critical: worker.is_critical,
            state: Mutex::new(State {
                started: Instant::now(),
                succeeded: None,
                failures: 0,
                phase: Phase::Running,
            }),
        });
        self.0.lock().push(Arc::clone(&status));
        status
    }

    /// Returns the names of the workers that have not ended.
    pub(super) fn running(&self) -> Vec<&'static str> {
        let statuses = self.0.lock();
        let running = |status: &&Arc<Status>| status.state.lock().phase != Phase::Stopped;
        statuses.iter().filter(running).map(|status| status.name).collect()
    }
}

impl Status {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn failures(&self) -> u32 {
        self.state.lock().failures
    }

    pub(super) fn note_success(&self) {
        let mut state = self.state.lock();
        (state.succeeded, state.failures) = (Some(Instant::now()), 0);
        drop(state);
        self.count("true");
    }

    pub(super) fn note_failure(&self, error: &dyn Display) {
        let failures = self.fail();
        tracing::warn!(%error, worker.name = self.name, failures, "failed to run a worker");
    }

    pub(super) fn note_panic(&self, panic: &str) {
        let failures = self.fail();
        tracing::error!(worker.name = self.name, panic, failures, "caught a panic of a worker");
    }

    fn fail(&self) -> u32 {
        let failures = {
            let mut state = self.state.lock();
            state.failures = state.failures.saturating_add(1);
            state.failures
        };
        self.count("false");
        failures
    }

    fn count(&self, ok: &'static str) {
        metrics::counter!("authority_worker_runs_total", "name" => self.name, "ok" => ok)
            .increment(1);
    }

    pub(super) fn note_running(&self) {
        self.state.lock().phase = Phase::Running;
    }

    pub(super) fn note_down(&self) {
        self.state.lock().phase = Phase::Down;
    }

    pub(super) fn note_stopped(&self) {
        self.state.lock().phase = Phase::Stopped;
    }

    fn report(&self) -> Report {
        let state = self.state.lock();
        let since_success = state.succeeded.map(|at| at.elapsed());
        let age = since_success.unwrap_or_else(|| state.started.elapsed());
        let is_late = self.every.is_some_and(|every| is_late(every, age));
        let fault = match state.phase {
            Phase::Down => Some("it ended and is being restarted".to_owned()),
            Phase::Running if is_late => {
                let what =
                    if since_success.is_some() { "last success" } else { "no success; start" };
                Some(format!("late: {what} {} s ago", age.as_secs()))
            }
            Phase::Running | Phase::Stopped => None,
        };
        Report { name: self.name, since_success, fault, is_critical: self.is_critical }
    }
}

fn is_late(every: Duration, age: Duration) -> bool {
    age > every.saturating_mul(PERIODS).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_after_three_periods_and_five_seconds() {
        let late = |every, age| is_late(Duration::from_millis(every), Duration::from_millis(age));
        assert!(!late(250, 5_000) && late(250, 5_001));
        assert!(!late(30_000, 90_000) && late(30_000, 90_001));
    }
}
