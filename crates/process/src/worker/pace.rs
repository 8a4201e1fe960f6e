//! The pauses of a worker between its runs.

use std::time::Duration;

/// The pause after the first failure. Each consecutive failure doubles it.
const FIRST: Duration = Duration::from_millis(100);
/// The maximum pause, unless the period is shorter.
const LONGEST: Duration = Duration::from_secs(10);
/// The maximum pause of a worker without a period. It is short, because calls may wait for the
/// worker.
const LONGEST_WAITED_FOR: Duration = Duration::from_secs(2);
/// The maximum fraction by which a pause is shortened at random. It keeps nodes that started
/// together from querying the database at the same time.
const JITTER: f64 = 0.2;

/// Returns the pause after this many consecutive failures.
pub(super) fn back_off(failures: u32, every: Option<Duration>) -> Duration {
    let longest = every.unwrap_or(LONGEST_WAITED_FOR).min(LONGEST);
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST.saturating_mul(doubled).min(longest)
}

/// Shortens the pause by up to a fifth, at random.
pub(super) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(1.0 - JITTER * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_makes_a_pause_shorter_by_a_fifth_at_most() {
        for pause in [0, 1, 250, 30_000, 3_600_000].map(Duration::from_millis) {
            for _ in 0..1000 {
                let jittered = jittered(pause);
                assert!(jittered <= pause && jittered >= pause.mul_f64(0.8), "{jittered:?}");
            }
        }
    }

    #[test]
    fn back_off_never_outlasts_the_period() {
        for every in [1, 250, 1000, 30_000, 3_600_000].map(Duration::from_millis) {
            let mut last = Duration::ZERO;
            for failures in 1..100 {
                let pause = back_off(failures, Some(every));
                assert!(last <= pause && pause <= every && pause <= LONGEST, "{pause:?}");
                last = pause;
            }
        }
    }

    #[test]
    fn jitter_differs() {
        let pause = Duration::from_secs(1);
        let first = jittered(pause);
        assert!((0..100).any(|_| jittered(pause) != first));
    }

    #[test]
    fn back_off_doubles() {
        let pauses = [1, 2, 3, 4, 5, 6, 7, 8, u32::MAX];
        let pauses = pauses.map(|failures| back_off(failures, Some(Duration::from_secs(3600))));
        let millis = pauses.map(|pause| pause.as_millis());
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(back_off(9, None), LONGEST_WAITED_FOR);
    }
}
