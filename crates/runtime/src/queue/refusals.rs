//! The pace of refusals. They are sent at once while there are few, and delayed in a flood.
//!
//! A client that retries as soon as it is refused would otherwise take CPU time from decisions.
//! Even the cheapest refusal reads a request, checks a credential and writes a response. In a
//! flood, refusals are therefore delayed. Each delay costs only a timer.

use std::time::{Duration, Instant};

/// The number of refusals that are sent for each decision made. They cost about a tenth of the CPU
/// time of the decisions.
const PER_DECISION: f64 = 0.25;
/// The minimum number of refusals per second, however few decisions are made.
const LEAST: f64 = 200.0;
/// After a pause, as many refusals are sent at once as the rate permits in this time span.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The longest wait. It ends before a decision's deadline. The caller then gets the refusal.
const LONGEST: Duration = Duration::from_millis(1900);
/// The interval at which waiting refusals are sent together. A connection then writes several
/// refusals at once and reads as many new calls. A separate write for each refusal cost more than
/// the refusal itself.
const TOGETHER: Duration = Duration::from_millis(50);
/// The maximum number of waiting refusals, to bound their memory. Others are sent at once.
const WAITING: usize = 32_768;

pub(super) struct Refusals {
    /// The start of the first interval of [`TOGETHER`].
    start: Instant,
    /// When the next refusal is due.
    due: Instant,
    waiting: usize,
}

impl Refusals {
    /// Starts in the state after a pause.
    pub(super) fn new(now: Instant) -> Self {
        Self { start: now, due: now.checked_sub(AT_ONCE).unwrap_or(now), waiting: 0 }
    }

    /// Returns how long the next refusal waits at this rate of decisions. The caller counts as
    /// waiting until [`Self::sent`].
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

    /// Returns the first moment at or after `due` at which refusals are sent.
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
        // At 4,000 decisions a second, 1,000 refusals are sent a second, 50 of them at once.
        let waits: Vec<_> = (0..3000).map(|_| refusals.wait(4000.0, now)).collect();
        assert!(waits[..50].iter().all(Duration::is_zero));
        // The refusals of 50 ms are sent together, each at or after its due time.
        assert!(waits[50..100].iter().all(|wait| *wait == TOGETHER), "{:?}", &waits[50..100]);
        assert_eq!(waits[1049], Duration::from_millis(1000));
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "none overtakes another");
        assert_eq!(waits[2999], LONGEST);
        let later = now + LONGEST + AT_ONCE;
        assert_eq!(refusals.wait(4000.0, later), Duration::ZERO);
    }
}
