//! How fresh the graph must be.

use std::time::Duration;

use authority_decision::facts::default_validity;

/// The tail's pace and patience.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How old the last look at the change log may be before nothing is decided any more.
    pub max_staleness: Duration,
    /// How often the log is looked at when no notification comes.
    pub poll: Duration,
    /// How long an allow is good for, where its tenant says nothing.
    pub valid_for_seconds: u32,
    /// Held back before each round: tests slow a tail down with it.
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
