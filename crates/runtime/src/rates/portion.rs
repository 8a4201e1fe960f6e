//! The portions of a limit that a node may take: the generic cell rate algorithm.
//!
//! For each limit, Postgres stores the time at which the whole limit is available again. Each
//! decision delays this time by its share of a second. The time may be one second ahead: one
//! second's decisions can come at once, and further decisions at the rate of the limit.

use chrono::{DateTime, TimeDelta, Utc};

/// How far the stored time may be ahead of the current time.
const BURST: TimeDelta = TimeDelta::seconds(1);
/// The number of portions in one second's decisions.
const PORTIONS: u32 = 10;

/// The outcome for a node that requests a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Portion {
    /// The number of granted decisions, at least as many as were requested.
    Granted(u32),
    /// No decision is granted until this time has passed.
    Refused(TimeDelta),
}

/// Returns the portion for a call of `asked` decisions. Also returns the time at which the whole
/// limit is then available again.
pub(super) fn portion(
    unused_at: DateTime<Utc>,
    now: DateTime<Utc>,
    per_second: u32,
    asked: u32,
) -> (Portion, DateTime<Utc>) {
    let per_second = per_second.max(1);
    let nanos = |decisions: u32| {
        TimeDelta::nanoseconds(1_000_000_000 * i64::from(decisions) / i64::from(per_second))
    };
    let from = unused_at.max(now);
    let room = now + BURST - from;
    // A batch that is larger than the limit needs the whole limit. Later calls wait longer because
    // of the excess.
    let needed = nanos(asked.min(per_second));
    if room < needed {
        return (Portion::Refused(needed - room), from);
    }
    let usual = (per_second / PORTIONS).max(1);
    let granted = if room < nanos(usual) { asked } else { usual.max(asked) };
    (Portion::Granted(granted), from + nanos(granted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    /// Returns how many single decisions are granted at once, and the wait after them.
    fn at_once(per_second: u32, mut unused_at: DateTime<Utc>) -> (u32, TimeDelta, DateTime<Utc>) {
        let mut all = 0;
        loop {
            match portion(unused_at, NOW, per_second, 1) {
                (Portion::Granted(some), next) => (all, unused_at) = (all + some, next),
                (Portion::Refused(wait), next) => return (all, wait, next),
            }
        }
    }

    #[test]
    fn a_second_of_decisions_comes_at_once_and_then_the_rate_counts() {
        for per_second in [1, 3, 10, 1000] {
            let (all, wait, unused_at) = at_once(per_second, NOW);
            assert_eq!(all, per_second);
            let one = TimeDelta::nanoseconds(1_000_000_000 / i64::from(per_second));
            assert!((wait - one).abs() < TimeDelta::microseconds(1), "{per_second}: {wait}");
            let later = NOW + wait;
            assert!(matches!(portion(unused_at, later, per_second, 1), (Portion::Granted(_), _)));
        }
    }

    #[test]
    fn a_batch_above_the_limit_waits_for_all_of_it_and_is_paid_for() {
        let (granted, unused_at) = portion(NOW, NOW, 10, 100);
        assert_eq!(granted, Portion::Granted(100));
        assert_eq!(unused_at, NOW + TimeDelta::seconds(10));
        let (refused, _) = portion(unused_at, NOW, 10, 1);
        assert_eq!(refused, Portion::Refused(TimeDelta::milliseconds(9100)));
    }
}
