//! The one place that reads the time; all other code gets a [`Clock`].

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};

/// Tells the time: the machine's, or one that a test sets.
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Machine,
    /// Stopped at this time, in microseconds since 1970, also for the database.
    Fixed(Arc<AtomicI64>),
    /// This many microseconds ahead of the machine's, which is the database's.
    Wrong(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stops until it is advanced.
    pub fn fixed(at: DateTime<Utc>) -> Self {
        Self(Source::Fixed(Arc::new(AtomicI64::new(at.timestamp_micros()))))
    }

    /// A running clock that is ahead of all others, or behind.
    pub fn wrong(by: TimeDelta) -> Self {
        let micros = by.num_microseconds().unwrap_or_default();
        Self(Source::Wrong(Arc::new(AtomicI64::new(micros))))
    }

    /// Now, to the microsecond (what Postgres keeps).
    pub fn now(&self) -> DateTime<Utc> {
        let micros = match &self.0 {
            Source::Machine => machine(),
            Source::Fixed(set) => set.load(Ordering::Acquire),
            Source::Wrong(ahead) => machine() + ahead.load(Ordering::Acquire),
        };
        DateTime::from_timestamp_micros(micros).unwrap_or_default()
    }

    /// The database's time for a time of this clock: the same, except for a fixed clock, which applies to the
    /// database too.
    pub fn by_database(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        match &self.0 {
            Source::Machine | Source::Wrong(_) => at,
            Source::Fixed(set) => {
                let ahead = set.load(Ordering::Acquire) - machine();
                at.checked_sub_signed(TimeDelta::microseconds(ahead)).unwrap_or(at)
            }
        }
    }

    /// Advances a fixed or wrong clock; no effect on the machine's.
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
