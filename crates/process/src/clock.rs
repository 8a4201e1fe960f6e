//! The only place that reads the time. All other code gets a [`Clock`].

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};

/// Returns the time: the machine's time, or a time that a test sets.
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Machine,
    /// Stands still at this time, in microseconds since 1970. Times for the database are converted
    /// ([`Clock::by_database`]).
    Fixed(Arc<AtomicI64>),
    /// Runs this many microseconds ahead of the machine's clock. The database uses the machine's
    /// clock.
    Wrong(Arc<AtomicI64>),
}

impl Clock {
    /// Returns a clock that stands still until it is advanced.
    pub fn fixed(at: DateTime<Utc>) -> Self {
        Self(Source::Fixed(Arc::new(AtomicI64::new(at.timestamp_micros()))))
    }

    /// Returns a running clock that differs from the machine's clock by this time.
    pub fn wrong(by: TimeDelta) -> Self {
        let micros = by.num_microseconds().unwrap_or_default();
        Self(Source::Wrong(Arc::new(AtomicI64::new(micros))))
    }

    /// Returns the current time in microseconds, the precision of Postgres.
    pub fn now(&self) -> DateTime<Utc> {
        let micros = match &self.0 {
            Source::Machine => machine(),
            Source::Fixed(set) => set.load(Ordering::Acquire),
            Source::Wrong(ahead) => machine() + ahead.load(Ordering::Acquire),
        };
        DateTime::from_timestamp_micros(micros).unwrap_or_default()
    }

    /// Converts a time of this clock to the database's time.
    ///
    /// The two times are equal unless this clock is fixed. The database's clock keeps running: a
    /// fixed time is moved by its difference from the machine's clock.
    pub fn by_database(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        match &self.0 {
            Source::Machine | Source::Wrong(_) => at,
            Source::Fixed(set) => {
                let ahead = set.load(Ordering::Acquire) - machine();
                at.checked_sub_signed(TimeDelta::microseconds(ahead)).unwrap_or(at)
            }
        }
    }

    /// Advances a fixed or wrong clock. Has no effect on the machine's clock.
    pub fn advance(&self, by: TimeDelta) {
        if let Source::Fixed(set) | Source::Wrong(set) = &self.0 {
            set.fetch_add(by.num_microseconds().unwrap_or_default(), Ordering::AcqRel);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn machine() -> i64 {
    Utc::now().timestamp_micros()
}
