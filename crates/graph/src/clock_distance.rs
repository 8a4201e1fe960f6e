//! The difference between this node's clock and the database's clock.
//!
//! The node's clock determines the start and end of windows, the window in which a budget's use
//! counts, and the dates of records. All nodes share the database, which makes its clock the
//! reference.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};

use authority_process::{clock::Clock, log_limit::LogLimit};

/// Operators are warned if the clocks differ by at least this time.
const WARNED: Duration = Duration::from_secs(1);
/// The interval of warnings.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// The maximum duration of a query for the time. The database may have read its clock at any moment
/// of the query: the result of a slower query is not used.
const LONGEST: Duration = Duration::from_secs(1);
const UNKNOWN: i64 = i64::MIN;

/// The last measured difference.
pub(super) struct ClockDistance {
    clock: Clock,
    /// The difference in microseconds; positive if the node is ahead.
    micros: AtomicI64,
    warnings: LogLimit,
}

/// A running query for the database's time.
pub(super) struct Query {
    at: DateTime<Utc>,
    started: Instant,
}

impl ClockDistance {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, micros: AtomicI64::new(UNKNOWN), warnings: LogLimit::new(WARN_EVERY) }
    }

    pub(super) fn start_query(&self) -> Query {
        Query { at: self.clock.by_database(self.clock.now()), started: Instant::now() }
    }

    /// Records that the database's clock showed `answered_at` during the query.
    ///
    /// Assumes that the database read its clock in the middle of the query.
    pub(super) fn answered(&self, query: &Query, answered_at: DateTime<Utc>) {
        let took = query.started.elapsed();
        if took > LONGEST {
            return;
        }
        let Ok(half) = TimeDelta::from_std(took / 2) else { return };
        let distance = (query.at + half) - answered_at;
        let micros = distance.num_microseconds().unwrap_or(i64::MAX);
        self.micros.store(micros, Ordering::Release);
        metrics::gauge!("authority_clock_ahead_seconds").set(distance.as_seconds_f64());
        if Duration::from_micros(micros.unsigned_abs()) >= WARNED {
            self.warn(micros / 1000);
        }
    }

    fn warn(&self, ahead_ms: i64) {
        if self.warnings.pass("clock").is_some() {
            tracing::warn!(ahead_ms, "found different clocks of this node and the database");
        }
    }

    /// Returns the absolute difference; `None` before the first measurement.
    pub(super) fn get(&self) -> Option<Duration> {
        match self.micros.load(Ordering::Acquire) {
            UNKNOWN => None,
            micros => Some(Duration::from_micros(micros.unsigned_abs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_measured_from_the_middle_of_short_queries() {
        let distance = ClockDistance::new(Clock::default());
        assert_eq!(distance.get(), None);
        let second = Duration::from_secs(1);
        let ago = |took: Duration| Query {
            started: Instant::now().checked_sub(took).unwrap(),
            ..distance.start_query()
        };
        let query = ago(second / 2);
        // Sent at `at` and answered half a second later. The middle is a quarter of a second after
        // `at`.
        distance.answered(&query, query.at - TimeDelta::seconds(3));
        let found = distance.get().unwrap_or_default();
        assert!((3250..3300).contains(&found.as_millis()), "{found:?}");
        let slow = ago(second + second / 10);
        distance.answered(&slow, slow.at);
        assert_eq!(distance.get(), Some(found), "a query of over a second changed the measurement");
        let behind = distance.start_query();
        distance.answered(&behind, behind.at + TimeDelta::seconds(2));
        let found = distance.get().unwrap_or_default();
        assert!((1900..=2000).contains(&found.as_millis()), "{found:?}");
    }
}
