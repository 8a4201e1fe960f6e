//! Limits on how often an operation may be called. Each limit is a constant in the code that
//! enforces it; `GET /rate-limits` lists them.

use chrono::TimeDelta;

/// The number of calls permitted in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The limited operation, and the party to which the limit applies.
    pub name: &'static str,
    pub limit: u32,
    pub window_seconds: u32,
}

impl RateLimit {
    pub const fn window(self) -> TimeDelta {
        TimeDelta::seconds(self.window_seconds as i64)
    }
}
