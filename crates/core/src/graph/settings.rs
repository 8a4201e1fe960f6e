//! How fresh the graph must be.

use std::time::Duration;

use authority_decision::facts::default_validity;

/// The tail's interval and timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The greatest age of the last read of the change log; beyond it nothing is decided.
    pub max_staleness: Duration,
    /// The interval of reading the log without a notification.
    pub poll: Duration,
    /// How long an allow is valid, unless its tenant sets it.
    pub valid_for_seconds: u32,
    /// A delay before each round, with which tests slow a tail down.
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
