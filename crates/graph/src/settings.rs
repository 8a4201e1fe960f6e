//! Settings for keeping the graph current.

use std::time::Duration;

use authority_decision::facts::default_validity;

/// The tail's interval and timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The maximum age of the last read of the change log. Beyond it, no decisions are made.
    pub max_staleness: Duration,
    /// The interval of reading the change log while no notifications arrive.
    pub poll: Duration,
    /// How long an allow is valid, unless its tenant sets another value.
    pub valid_for_seconds: u32,
    /// A delay before each round, which tests use to slow the tail down.
    pub delay: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_staleness: Duration::from_secs(5),
            poll: Duration::from_millis(500),
            valid_for_seconds: default_validity(),
            delay: Duration::ZERO,
        }
    }
}
