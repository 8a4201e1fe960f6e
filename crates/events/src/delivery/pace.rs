//! An endpoint's rate limit.

use std::time::Duration;

use chrono::TimeDelta;

/// The most attempts that start at once after a pause.
const BURST: i64 = 4;

/// Limits how many attempts to an endpoint start within any one second.
///
/// This is the generic cell rate algorithm. Its state is a `lead`: how long the endpoint would be
/// busy if each started attempt took an equal share of a second.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// How much one attempt adds to the lead.
    each: TimeDelta,
    /// The largest lead at which an attempt may start.
    ahead: TimeDelta,
}

impl Pace {
    pub(super) fn of(per_second: i32) -> Self {
        let per_second = i64::from(per_second.max(1));
        let burst = (per_second / 25).clamp(1, BURST);
        // A burst plus the single attempts in the rest of the second add up to the limit.
        let singles = per_second - burst + 1;
        let each = TimeDelta::microseconds((1_000_000 + singles - 1) / singles);
        Self { each, ahead: each * i32::try_from(burst - 1).unwrap_or_default() }
    }

    /// Returns the lead after one more attempt, if it may start now.
    pub(super) fn admit(&self, lead: TimeDelta) -> Option<TimeDelta> {
        let lead = lead.max(TimeDelta::zero());
        (lead <= self.ahead).then(|| lead + self.each)
    }

    /// Returns the time until the next attempt may start; zero if it may start now.
    pub(super) fn pause(&self, lead: TimeDelta) -> Duration {
        (lead - self.ahead).to_std().unwrap_or_default()
    }

    /// Returns the lead that results in this pause.
    pub(super) fn lead(&self, pause: Duration) -> TimeDelta {
        self.ahead + TimeDelta::from_std(pause).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_the_limit() {
        for per_second in [1, 2, 7, 24, 25, 50, 99, 100, 250, 1000] {
            let (pace, mut lead, mut sent) = (Pace::of(per_second), TimeDelta::zero(), Vec::new());
            for milli in 0..5000 {
                for _ in 0..4 {
                    let Some(next) = pace.admit(lead) else { break };
                    lead = next;
                    sent.push(milli);
                }
                lead = (lead - TimeDelta::milliseconds(1)).max(TimeDelta::zero());
            }
            let most = (0..4000)
                .map(|from| sent.iter().filter(|at| (from..from + 1000).contains(*at)).count());
            let limit = usize::try_from(per_second).unwrap();
            assert!(most.max().unwrap() <= limit, "{per_second}");
            assert!(sent.len() * 10 >= limit * 5 * 8, "{per_second}: only {}", sent.len());
        }
    }

    /// Returns how many attempts start at once.
    fn burst(per_second: i32, lead: TimeDelta) -> usize {
        let pace = Pace::of(per_second);
        std::iter::successors(Some(lead), |lead| pace.admit(*lead)).skip(1).count()
    }

    #[test]
    fn a_pause_earns_no_more_than_a_burst() {
        assert_eq!(burst(1000, TimeDelta::zero()), 4);
        assert_eq!(burst(1000, -TimeDelta::days(1)), 4);
        assert_eq!(burst(1, TimeDelta::zero()), 1);
        assert_eq!(burst(1, TimeDelta::seconds(1)), 0);
    }

    #[test]
    fn after_its_pause_an_attempt_may_start_and_not_before() {
        for per_second in [1, 5, 24, 100, 1000] {
            let pace = Pace::of(per_second);
            let mut lead = TimeDelta::zero();
            while let Some(next) = pace.admit(lead) {
                lead = next;
            }
            let pause = pace.pause(lead);
            assert!(!pause.is_zero());
            assert_eq!(pace.lead(pause), lead);
            let rest = lead - TimeDelta::from_std(pause).unwrap();
            assert!(pace.admit(rest).is_some());
            assert!(pace.admit(rest + TimeDelta::microseconds(1)).is_none());
        }
        assert!(Pace::of(1).pause(TimeDelta::zero()).is_zero());
    }
}
