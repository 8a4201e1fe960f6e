//! When a refusal is sent: at once while there are few of them, and paced in a flood.
//!
//! A client that asks again as soon as it is refused would otherwise take the processors from the decisions, since
//! even the cheapest refusal has its request read, its credential checked and its response written. It is made to
//! wait as Retry-After says; the wait costs a timer.

use std::time::{Duration, Instant};

/// Refusals for each decision that is made: together they cost about a tenth of the decisions.
const PER_DECISION: f64 = 0.25;
/// A second, however few decisions are made.
const LEAST: f64 = 200.0;
/// Refusals that are sent at once after a pause.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The longest wait: within a decision's deadline, so that the caller learns why.
const LONGEST: Duration = Duration::from_millis(1900);
/// Those that wait are sent at the same moments, so that a connection writes several at once, and reads as many new
/// calls: a write of its own for each cost more than the refusal.
const TOGETHER: Duration = Duration::from_millis(50);
/// The refusals that wait; any more are sent at once. It bounds their memory.
const WAITING: usize = 32_768;

pub(super) struct Refusals {
    /// From when moments are counted.
    start: Instant,
    /// When the next one is due.
    due: Instant,
    waiting: usize,
}

impl Refusals {
    /// As after a pause.
    pub(super) fn new(now: Instant) -> Self {
        Self { start: now, due: now.checked_sub(AT_ONCE).unwrap_or(now), waiting: 0 }
    }

    /// How long the next one waits, if so many decisions a second are made. The caller counts as waiting until
    /// [`Self::sent`].
    pub(super) fn wait(&mut self, per_second: f64, now: Instant) -> Duration {
        self.waiting += 1;
        if self.waiting > WAITING {
            return Duration::ZERO;
        }
        let every = Duration::from_secs_f64(1.0 / (per_second * PER_DECISION).max(LEAST));
        let earliest = now.checked_sub(AT_ONCE).unwrap_or(now);
        self.due = (self.due.max(earliest) + every).min(now + LONGEST);
        if self.due <= now {
            return Duration::ZERO;
        }
        self.moment(self.due).saturating_duration_since(now).min(LONGEST)
    }

    /// The next moment at which refusals are sent.
    fn moment(&self, due: Instant) -> Instant {
        let since = due.saturating_duration_since(self.start).as_micros();
        let moments = since.div_ceil(TOGETHER.as_micros());
        self.start + TOGETHER * u32::try_from(moments).unwrap_or(u32::MAX)
    }

    pub(super) fn sent(&mut self) {
        self.waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_refusals_are_sent_at_once_and_a_flood_waits() {
        let now = Instant::now();
        let mut refusals = Refusals::new(now);
        // 1,000 refusals a second, 50 at once.
        let waits: Vec<_> = (0..3000).map(|_| refusals.wait(4000.0, now)).collect();
        assert!(waits[..50].iter().all(Duration::is_zero));
        // Those of 50 ms are sent together, and none before its time.
        assert!(waits[50..100].iter().all(|wait| *wait == TOGETHER), "{:?}", &waits[50..100]);
        assert_eq!(waits[1049], Duration::from_millis(1000));
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "none overtakes another");
        assert_eq!(waits[2999], LONGEST);
        let later = now + LONGEST + AT_ONCE;
        assert_eq!(refusals.wait(4000.0, later), Duration::ZERO);
    }
}
