//! Limits on how often something may be called. Each is a constant where it is enforced; `GET /rate-limits` lists
//! them.

use chrono::TimeDelta;

/// So many calls in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// What is limited, and for whom.
    pub name: &'static str,
    pub limit: u32,
    pub window_seconds: u32,
}

impl RateLimit {
    pub const fn window(self) -> TimeDelta {
        TimeDelta::seconds(self.window_seconds as i64)
    }
}
