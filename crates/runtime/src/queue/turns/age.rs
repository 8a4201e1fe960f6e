//! How long calls have waited.

use std::{collections::VecDeque, time::Instant};

use super::{Turns, Waiter};

impl<P> Turns<P> {
    /// Returns the time at which the oldest waiting call entered the queue. Calls of callers that
    /// have left are ignored.
    pub(in crate::queue) fn oldest(&self) -> Option<Instant> {
        let first = |waiting: &VecDeque<Waiter<P>>| {
            let mut here = waiting.iter().filter(|waiter| !waiter.sender.is_closed());
            here.next().map(|waiter| waiter.since)
        };
        self.tenants.values().filter_map(|tenant| first(&tenant.waiting)).min()
    }
}
