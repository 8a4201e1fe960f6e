//! The deadline of a call. The outermost layer sets it. Code that waits while it handles the call
//! reads it.

use std::time::{Duration, Instant};

use http::Extensions;

/// The time limit of a decision, from the request's head to the response.
pub const DECISION: Duration = Duration::from_secs(2);
/// The time limit of any other call, including a batch of decisions.
pub const CALL: Duration = Duration::from_secs(10);

/// The deadline of a call, stored in the call's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// The call's own deadline, or a decision's limit from now if none was set.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_else(|| Self::after(DECISION))
    }

    /// The remaining time.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn at(self) -> Instant {
        self.0
    }
}
