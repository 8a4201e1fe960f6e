//! Limits how often an event is logged, to keep repeated requests or faults from filling the disk.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Passes at most one line of each kind in a period. The next line has the number of omitted lines.
pub struct LogLimit {
    every: Duration,
    kinds: Mutex<HashMap<&'static str, Kind>>,
}

struct Kind {
    logged: Instant,
    left_out: u64,
}

impl LogLimit {
    pub fn new(every: Duration) -> Self {
        Self { every, kinds: Mutex::default() }
    }

    /// Returns whether to log an event of this kind now.
    ///
    /// Returns the number of events since the last line, including this one, or `None` to omit it.
    pub fn pass(&self, kind: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut kinds = self.kinds.lock();
        let Some(known) = kinds.get_mut(kind) else {
            kinds.insert(kind, Kind { logged: now, left_out: 0 });
            return Some(1);
        };
        if now.duration_since(known.logged) < self.every {
            known.left_out += 1;
            return None;
        }
        known.logged = now;
        Some(std::mem::take(&mut known.left_out) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_those_that_were_left_out_before_it() {
        let limit = LogLimit::new(Duration::from_millis(50));
        assert_eq!(limit.pass("a"), Some(1));
        assert_eq!(limit.pass("a"), None);
        assert_eq!(limit.pass("b"), Some(1));
        assert_eq!(limit.pass("a"), None);
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(limit.pass("a"), Some(3));
        assert_eq!(limit.pass("a"), None);
    }
}
