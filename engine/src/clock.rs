//! The one place that asks what time it is; everyone else is handed a [`Clock`].

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};

/// Tells the time: the machine's, or one that a test sets.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// A clock that stands still until it is moved.
    pub fn fixed(at: DateTime<Utc>) -> Self {
        Self(Some(Arc::new(AtomicI64::new(at.timestamp_micros()))))
    }

    /// Now, to the microsecond (what Postgres keeps).
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> DateTime<Utc> {
        let micros = match &self.0 {
            None => Utc::now().timestamp_micros(),
            Some(set) => set.load(Ordering::Acquire),
        };
        DateTime::from_timestamp_micros(micros).unwrap_or_default()
    }

    /// Moves a fixed clock on; the machine's is left alone.
    pub fn advance(&self, by: TimeDelta) {
        if let Some(set) = &self.0 {
            set.fetch_add(by.num_microseconds().unwrap_or_default(), Ordering::AcqRel);
        }
    }
}
