//! How far the writer is behind, for operators.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_core::log_limit::LogLimit;
use parking_lot::Mutex;

/// The interval of the log's lines about refusals.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// The queue now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Decisions that wait to be written.
    pub entries: usize,
    /// How long the batch has been written behind which they wait; zero if none waits.
    pub age: Duration,
}

/// What the writer does now, and the refusals of a full queue. Clones share it.
#[derive(Clone)]
pub(super) struct Progress(Arc<Inner>);

struct Inner {
    /// When the writer took the batch that it writes.
    took: Mutex<Option<Instant>>,
    refusals: LogLimit,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Inner { took: Mutex::default(), refusals: LogLimit::new(LOG_EVERY) }))
    }

    pub(super) fn begin(&self) {
        *self.0.took.lock() = Some(Instant::now());
    }

    pub(super) fn end(&self) {
        *self.0.took.lock() = None;
    }

    pub(super) fn of(&self, entries: usize) -> Backlog {
        let took = if entries == 0 { None } else { *self.0.took.lock() };
        Backlog { entries, age: took.map(|at| at.elapsed()).unwrap_or_default() }
    }

    /// The queue is full, so a decision is not recorded, and nothing is permitted.
    pub(super) fn refused(&self) {
        metrics::counter!("authority_recorder_refused_total").increment(1);
        if let Some(count) = self.0.refusals.pass("full") {
            tracing::warn!(count, "the queue of decisions to be recorded is full: refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_has_no_age() {
        let progress = Progress::new();
        progress.begin();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(progress.of(0).age, Duration::ZERO);
        assert!(progress.of(1).age >= Duration::from_millis(5));
        progress.end();
        assert_eq!(progress.of(1).age, Duration::ZERO);
    }
}
