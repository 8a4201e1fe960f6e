//! An endpoint's rate limit.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// The most that goes out at once after a pause.
const BURST: i64 = 4;

/// How many of the attempts wanted may start at `now`, and the pace after them. In no second start more than
/// `per_second`.
///
/// This is the generic cell rate algorithm: `paced_until` is when the endpoint would be idle if each
/// attempt took its share of a second.
pub(super) fn permitted(
    paced_until: Option<DateTime<Utc>>,
    per_second: i32,
    wanted: usize,
    now: DateTime<Utc>,
) -> (usize, DateTime<Utc>) {
    let Rate { each, ahead } = Rate::of(per_second);
    let mut until = paced_until.map_or(now, |until| until.max(now));
    let mut count = 0;
    while count < wanted && until - now <= ahead {
        until += each;
        count += 1;
    }
    (count, until)
}

/// How long from `now` to the next attempt; nothing if one may start.
pub(super) fn pause(
    paced_until: Option<DateTime<Utc>>,
    per_second: i32,
    now: DateTime<Utc>,
) -> Duration {
    let next = paced_until.map_or(now, |until| until - Rate::of(per_second).ahead);
    (next - now).to_std().unwrap_or_default()
}

struct Rate {
    /// What one attempt takes.
    each: TimeDelta,
    /// How far attempts may be ahead.
    ahead: TimeDelta,
}

impl Rate {
    fn of(per_second: i32) -> Self {
        let per_second = i64::from(per_second.max(1));
        let burst = (per_second / 25).clamp(1, BURST);
        // A burst and a second of single attempts together are the limit.
        let singles = per_second - burst + 1;
        let each = TimeDelta::microseconds((1_000_000 + singles - 1) / singles);
        Self { each, ahead: each * i32::try_from(burst - 1).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_the_limit() {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for per_second in [1, 2, 7, 24, 25, 50, 99, 100, 250, 1000] {
            let (mut until, mut sent) = (None, Vec::new());
            for milli in 0..5000 {
                let now = start + TimeDelta::milliseconds(milli);
                let (count, next) = permitted(until, per_second, 4, now);
                until = Some(next);
                sent.extend(std::iter::repeat_n(milli, count));
            }
            let most = (0..4000)
                .map(|from| sent.iter().filter(|at| (from..from + 1000).contains(*at)).count());
            let limit = usize::try_from(per_second).unwrap();
            assert!(most.max().unwrap() <= limit, "{per_second}");
            assert!(sent.len() * 10 >= limit * 5 * 8, "{per_second}: only {}", sent.len());
        }
    }

    #[test]
    fn a_pause_earns_no_more_than_a_burst() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        assert_eq!(permitted(None, 1000, 100, now).0, 4);
        assert_eq!(permitted(Some(now - TimeDelta::days(1)), 1000, 100, now).0, 4);
        assert_eq!(permitted(None, 1, 100, now).0, 1);
        assert_eq!(permitted(Some(now + TimeDelta::seconds(1)), 1, 100, now).0, 0);
    }

    #[test]
    fn after_its_pause_an_attempt_may_start_and_not_before() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for per_second in [1, 5, 24, 100, 1000] {
            let (_, until) = permitted(None, per_second, 100, now);
            let pause = pause(Some(until), per_second, now);
            assert!(!pause.is_zero());
            let next = now + TimeDelta::from_std(pause).unwrap();
            assert_eq!(permitted(Some(until), per_second, 1, next).0, 1);
            let before = next - TimeDelta::microseconds(1);
            assert_eq!(permitted(Some(until), per_second, 1, before).0, 0);
        }
        assert!(super::pause(None, 1, now).is_zero());
    }
}
