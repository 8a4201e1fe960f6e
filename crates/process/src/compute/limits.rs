//! Limits of running and waiting jobs.

use std::{thread, time::Duration};

/// Limits of running and waiting jobs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub threads: usize,
    /// The maximum number of running jobs of one tenant.
    pub running: usize,
    /// The maximum number of waiting jobs of one tenant.
    pub waiting: usize,
    /// The maximum number of waiting jobs of all tenants.
    pub waiting_in_all: usize,
    /// The maximum time from the request to the result.
    pub longest: Duration,
}

impl Default for Limits {
    /// Uses half as many threads as processors, at least two. The jobs of one tenant never occupy
    /// all threads.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = (processors / 2).max(2);
        Self {
            threads,
            running: threads - 1,
            waiting: 16,
            waiting_in_all: 128,
            // Below the call's own deadline. The caller then gets this limit's error.
            longest: Duration::from_secs(9),
        }
    }
}
