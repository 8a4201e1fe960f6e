//! Delays: jitter only adds, `Retry-After` only lengthens.

use std::time::Duration;

use proptest::prelude::*;

use super::at;
use crate::retry::{DEFAULT_DELAYS, RetryPolicy, Schedule, Strategy, retry_after};

const DAY: Duration = Duration::from_secs(86_400);

fn seconds(schedule: &Schedule) -> Vec<u64> {
    (1..).map_while(|failures| schedule.delay(failures, 0.0, None)).map(|d| d.as_secs()).collect()
}

fn exponential(base: u32, factor: f64, longest: u32, attempts: u32) -> Schedule {
    let policy = RetryPolicy {
        strategy: Some(Strategy::Exponential),
        base_seconds: Some(base),
        factor: Some(factor),
        max_delay_seconds: Some(longest),
        max_attempts: Some(attempts),
        ..RetryPolicy::default()
    };
    Schedule::try_from(&policy).unwrap()
}

#[test]
fn the_strategies_give_these_delays() {
    assert_eq!(seconds(&Schedule::default()), DEFAULT_DELAYS.map(u64::from));
    assert_eq!(seconds(&exponential(10, 2.0, 60, 6)), [10, 20, 40, 60, 60]);
    assert_eq!(seconds(&exponential(3, 1.5, 100, 5)), [3, 5, 7, 10]);
    assert_eq!(seconds(&exponential(7, 1.0, 7, 3)), [7, 7]);
    assert!(seconds(&exponential(10, 2.0, 60, 1)).is_empty());
}

/// In protobuf an empty list and an absent one are the same.
#[test]
fn no_delays_are_none_given() {
    let none = Some(Vec::new());
    let listed = RetryPolicy { schedule_seconds: none.clone(), ..RetryPolicy::default() };
    assert_eq!(Schedule::try_from(&listed), Ok(Schedule::default()));
    let exponential = RetryPolicy {
        strategy: Some(Strategy::Exponential),
        schedule_seconds: none,
        base_seconds: Some(10),
        factor: Some(2.0),
        max_delay_seconds: Some(60),
        max_attempts: Some(3),
        ..RetryPolicy::default()
    };
    assert_eq!(seconds(&Schedule::try_from(&exponential).unwrap()), [10, 20]);
}

#[test]
fn there_is_no_delay_before_the_first_failure_or_after_the_last() {
    let schedule = Schedule::default();
    assert_eq!(schedule.delay(0, 0.5, None), None);
    assert_eq!(schedule.delay(10, 0.5, Some(DAY)), None);
    assert_eq!(schedule.delay(u32::MAX, 0.5, None), None);
    assert_eq!(schedule.delay(1, 1.0, None), Some(Duration::from_secs(6)));
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = at(0); // Mon, 21 Sep 2026 14:13:20 GMT
    let cases = [
        ("0", Some(0)),
        ("120", Some(120)),
        (" 120\t", Some(120)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("Mon, 21 Sep 2026 14:13:50 GMT", Some(30)),
        ("Monday, 21-Sep-26 14:13:50 GMT", Some(30)),
        ("Mon Sep 21 14:13:50 2026", Some(30)),
        ("Mon, 21 Sep 2026 14:13:10 GMT", Some(0)),
        ("", None),
        ("-5", None),
        ("+5", None),
        ("1.5", None),
        ("soon", None),
        ("2026-09-21T14:13:50Z", None),
    ];
    for (value, expected) in cases {
        assert_eq!(retry_after(value, now), expected.map(Duration::from_secs), "{value:?}");
    }
}

proptest! {
    #[test]
    fn jitter_only_adds_and_retry_after_only_lengthens(
        failures in 1_u32..10, random in 0.0..=1.0, asked in prop::option::of(0_u64..200_000),
    ) {
        let schedule = Schedule::default();
        let asked = asked.map(Duration::from_secs);
        let least = schedule.delay(failures, 0.0, None).unwrap();
        let without = schedule.delay(failures, random, None).unwrap();
        prop_assert!(least <= without && without <= least.mul_f64(1.2) + Duration::from_millis(1));
        let delay = schedule.delay(failures, random, asked).unwrap();
        prop_assert_eq!(delay, without.max(asked.unwrap_or_default().min(DAY)));
    }

    #[test]
    fn a_strange_random_number_is_within_the_jitter(random in prop::num::f64::ANY) {
        let delay = Schedule::default().delay(1, random, None).unwrap();
        prop_assert!((5.0..=6.0).contains(&delay.as_secs_f64()));
    }
}
