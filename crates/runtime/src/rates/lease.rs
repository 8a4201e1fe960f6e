//! The part of a limit that a node has taken and not used yet.

use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Lease {
    /// The limit from which the lease was taken, in decisions a second.
    per_second: u32,
    /// The remaining decisions.
    left: u32,
    /// When the whole limit is available again, as of the last portion.
    whole_at: Option<Instant>,
    /// Calls of at least this number of decisions are refused until this time.
    refused: Option<(u32, Instant)>,
}

/// The result that a node can determine without the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Taken,
    /// The limit is exceeded. The value is the time to wait.
    Refused(Duration),
    /// Another portion has to be taken.
    Empty,
}

impl Lease {
    pub(super) fn per_second(&self) -> u32 {
        self.per_second
    }

    /// Drops decisions taken under another limit. A lower limit therefore applies at once.
    pub(super) fn keep_only_of(&mut self, per_second: u32) {
        if self.per_second != per_second {
            *self = Self { per_second, ..Self::default() };
        }
    }

    pub(super) fn take(&mut self, decisions: u32, now: Instant) -> Known {
        if let Some(wait) = self.refused(decisions, now) {
            return Known::Refused(wait);
        }
        match self.left.checked_sub(decisions) {
            Some(left) => {
                self.left = left;
                Known::Taken
            }
            None => Known::Empty,
        }
    }

    /// Returns how long calls with this number of decisions are refused, or `None` if they aren't.
    pub(super) fn refused(&self, decisions: u32, now: Instant) -> Option<Duration> {
        let (least, until) = self.refused?;
        (decisions >= least && now < until && decisions > self.left).then(|| until - now)
    }

    /// Adds a portion, after which the whole limit is available again at `whole_at`.
    pub(super) fn add(&mut self, decisions: u32, whole_at: Instant) {
        self.left = self.left.saturating_add(decisions);
        self.whole_at = Some(whole_at);
        self.refused = None;
    }

    /// Returns the decisions that are left now, as of the last portion, and the time until the whole
    /// limit is available again.
    pub(super) fn remaining(&self, now: Instant) -> (u32, Duration) {
        let wait = self.whole_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let room = Duration::from_secs(1).saturating_sub(wait).as_millis();
        let others = u32::try_from(room * u128::from(self.per_second) / 1000).unwrap_or_default();
        (self.left.saturating_add(others).min(self.per_second), wait)
    }

    pub(super) fn refuse(&mut self, decisions: u32, until: Instant) {
        self.refused = Some((decisions, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_of_another_limit_does_not_count() {
        let (mut lease, now) = (Lease::default(), Instant::now());
        lease.keep_only_of(10_000);
        lease.add(1_000, now);
        lease.keep_only_of(10_000);
        assert_eq!(lease.take(1, now), Known::Taken);
        lease.keep_only_of(1);
        assert_eq!(lease.take(1, now), Known::Empty);
        lease.refuse(1, now + Duration::from_secs(1));
        lease.keep_only_of(10_000);
        assert_eq!(lease.refused(1, now), None);
    }

    #[test]
    fn what_remains_is_the_lease_and_the_part_that_no_node_has_taken() {
        let (mut lease, now) = (Lease::default(), Instant::now());
        lease.keep_only_of(10);
        assert_eq!(lease.remaining(now), (10, Duration::ZERO));
        // A portion of 2 leaves 8 in the database.
        lease.add(2, now + Duration::from_millis(200));
        assert_eq!(lease.remaining(now), (10, Duration::from_millis(200)));
        assert_eq!(lease.take(1, now), Known::Taken);
        assert_eq!(lease.remaining(now).0, 9);
        let later = now + Duration::from_millis(100);
        assert_eq!(lease.remaining(later), (10, Duration::from_millis(100)));
        // A batch above the limit is paid for afterwards.
        lease.add(0, now + Duration::from_secs(3));
        assert_eq!(lease.remaining(now), (1, Duration::from_secs(3)));
    }

    #[test]
    fn a_refusal_counts_for_its_time_and_for_calls_of_its_size() {
        let (mut lease, now) = (Lease::default(), Instant::now());
        assert_eq!(lease.take(1, now), Known::Empty);
        lease.add(3, now);
        assert_eq!(lease.take(2, now), Known::Taken);
        assert_eq!(lease.take(2, now), Known::Empty);
        lease.refuse(2, now + Duration::from_secs(1));
        assert_eq!(lease.take(2, now), Known::Refused(Duration::from_secs(1)));
        assert_eq!(lease.take(1, now), Known::Taken);
        assert_eq!(lease.take(1, now), Known::Empty);
        assert_eq!(lease.take(2, now + Duration::from_secs(1)), Known::Empty);
    }
}
