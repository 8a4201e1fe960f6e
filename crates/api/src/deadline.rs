//! When a call must be answered. The outermost layer sets it, whoever waits on a call's behalf reads
//! it.

use std::time::{Duration, Instant};

use http::Extensions;

/// What a decision may take, from the call's head to its answer.
pub const DECISION: Duration = Duration::from_secs(2);
/// And every other call, a batch of decisions too.
pub const CALL: Duration = Duration::from_secs(10);

/// In the extensions of a call.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// The call's own; a decision's from now on, where none was set.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_else(|| Self::after(DECISION))
    }

    /// How long there still is.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn at(self) -> Instant {
        self.0
    }
}
