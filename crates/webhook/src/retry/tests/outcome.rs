//! The consequences of an attempt.

use std::time::Duration;

use super::at;
use crate::retry::{
    Answer, DeliveryNext, DisableReason, EndpointNext, Failing, LONGEST_RETRY_AFTER, Schedule,
    after_attempt,
};

fn after(status: Option<u16>, asked: Option<u64>, attempt: u32) -> (DeliveryNext, EndpointNext) {
    let answer = Answer { status, retry_after: asked.map(Duration::from_secs) };
    let failing = Failing { since: Some(at(-60)), in_a_row: 1 };
    after_attempt(&answer, &Schedule::default(), attempt, 0.0, failing, at(0))
}

fn retry(seconds: u64) -> DeliveryNext {
    DeliveryNext::Retry(Duration::from_secs(seconds))
}

#[test]
fn only_2xx_is_success() {
    for status in 100..600 {
        let (delivery, _) = after(Some(status), None, 1);
        let expected =
            if (200..300).contains(&status) { DeliveryNext::Delivered } else { retry(5) };
        assert_eq!(delivery, expected, "{status}");
    }
    assert_eq!(after(None, None, 1), (retry(5), EndpointNext::Unchanged));
}

#[test]
fn the_last_attempt_is_dead() {
    assert_eq!(after(Some(500), None, 9).0, retry(86_400));
    assert_eq!(after(Some(500), Some(60), 10).0, DeliveryNext::Dead);
    assert_eq!(after(Some(204), None, 10).0, DeliveryNext::Delivered);
}

#[test]
fn the_endpoint_waits_on_429_and_503_if_it_asks() {
    let wait = |seconds| EndpointNext::Wait(Duration::from_secs(seconds));
    assert_eq!(after(Some(429), Some(90), 1), (retry(90), wait(90)));
    assert_eq!(after(Some(503), Some(90), 2), (retry(300), wait(90)));
    let day = EndpointNext::Wait(LONGEST_RETRY_AFTER);
    assert_eq!(after(Some(503), Some(1_000_000), 1), (retry(86_400), day));
    // With another status, `Retry-After` affects only this delivery.
    assert_eq!(after(Some(500), Some(90), 1), (retry(90), EndpointNext::Unchanged));
    assert_eq!(after(Some(503), Some(0), 1), (retry(5), EndpointNext::Unchanged));
    assert_eq!(after(Some(429), None, 1), (retry(5), EndpointNext::Unchanged));
}

#[test]
fn gone_and_five_days_of_failures_disable() {
    assert_eq!(after(Some(410), None, 1).1, EndpointNext::Disable(DisableReason::Gone));
    let last = |since: Option<i64>, status| {
        let answer = Answer { status: Some(status), retry_after: None };
        let failing = Failing { since: since.map(at), in_a_row: 3 };
        after_attempt(&answer, &Schedule::default(), 10, 0.0, failing, at(0)).1
    };
    let disabled = EndpointNext::Disable(DisableReason::OnlyFailures);
    assert_eq!(last(Some(-5 * 86_400), 500), disabled);
    assert_eq!(last(Some(1 - 5 * 86_400), 500), EndpointNext::Unchanged);
    assert_eq!(last(None, 500), EndpointNext::Unchanged);
    assert_eq!(last(Some(-6 * 86_400), 200), EndpointNext::Unchanged);
}

#[test]
fn few_failures_far_apart_do_not_disable() {
    let first = |in_a_row| {
        let answer = Answer { status: Some(500), retry_after: None };
        let failing = Failing { since: Some(at(-6 * 86_400)), in_a_row };
        after_attempt(&answer, &Schedule::default(), 1, 0.0, failing, at(0)).1
    };
    assert_eq!(first(3), EndpointNext::Unchanged);
    assert_eq!(first(20), EndpointNext::Disable(DisableReason::OnlyFailures));
}
