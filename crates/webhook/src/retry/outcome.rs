//! The consequences of one attempt, for its delivery and for the endpoint.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{retry_after::LONGEST_RETRY_AFTER, schedule::Schedule};

/// An endpoint is disabled if all its attempts have failed for this long, and a delivery has used
/// up its attempts or there were many failures.
pub const DISABLED_AFTER: TimeDelta = TimeDelta::days(5);
/// The number of failures in a row that disables an endpoint after [`DISABLED_AFTER`] even if no
/// delivery has used up its attempts. While the breaker is open, deliveries use up their attempts
/// slowly.
const MANY_FAILURES: u32 = 20;

const TOO_MANY_REQUESTS: u16 = 429;
const SERVICE_UNAVAILABLE: u16 = 503;
const GONE: u16 = 410;

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code; `None` if there was no response because of the address, the connection, TLS
    /// or a time-out.
    pub status: Option<u16>,
    /// The wait that [`retry_after`](super::retry_after) read from the response.
    pub retry_after: Option<Duration>,
}

impl Answer {
    /// Only 2xx is success: redirects are not followed.
    pub fn succeeded(&self) -> bool {
        matches!(self.status, Some(200..=299))
    }

    /// The consequence for the endpoint, regardless of earlier attempts.
    pub fn endpoint(&self) -> EndpointNext {
        match (self.status, self.retry_after) {
            (Some(GONE), _) => EndpointNext::Disable(DisableReason::Gone),
            (Some(TOO_MANY_REQUESTS | SERVICE_UNAVAILABLE), Some(asked)) if !asked.is_zero() => {
                EndpointNext::Wait(asked.min(LONGEST_RETRY_AFTER))
            }
            _ => EndpointNext::Unchanged,
        }
    }
}

/// The next state of the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryNext {
    Delivered,
    /// The delivery is retried after this time.
    Retry(Duration),
    /// The delivery has failed permanently: this was its last attempt.
    Dead,
}

/// The next state of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointNext {
    Unchanged,
    /// The endpoint requested less load: no delivery to it is attempted for this time.
    Wait(Duration),
    Disable(DisableReason),
}

/// The reason for disabling an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisableReason {
    /// It responded with 410.
    Gone,
    /// No attempt succeeded for [`DISABLED_AFTER`], and a delivery used up its attempts or there
    /// were many failures.
    OnlyFailures,
}

/// The failures of an endpoint before an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failing {
    /// The time of the first failure after the last success.
    pub since: Option<DateTime<Utc>>,
    pub in_a_row: u32,
}

/// Returns the consequences of attempt number `attempt` (from 1) of a delivery.
///
/// `failing` does not count this attempt. `random` is the argument of [`Schedule::delay`]. If the
/// endpoint is disabled, the delivery's next attempt waits until the endpoint is enabled again.
pub fn after_attempt(
    answer: &Answer,
    schedule: &Schedule,
    attempt: u32,
    random: f64,
    failing: Failing,
    now: DateTime<Utc>,
) -> (DeliveryNext, EndpointNext) {
    if answer.succeeded() {
        return (DeliveryNext::Delivered, EndpointNext::Unchanged);
    }
    let delivery = schedule
        .delay(attempt, random, answer.retry_after)
        .map_or(DeliveryNext::Dead, DeliveryNext::Retry);
    let failing_for = failing.since.map_or(TimeDelta::zero(), |since| now - since);
    // A few failures that are days apart show little about an endpoint with few events.
    let is_proven = delivery == DeliveryNext::Dead || failing.in_a_row >= MANY_FAILURES;
    let is_failing = failing_for >= DISABLED_AFTER && is_proven;
    let endpoint = match answer.endpoint() {
        gone @ EndpointNext::Disable(_) => gone,
        _ if is_failing => EndpointNext::Disable(DisableReason::OnlyFailures),
        other => other,
    };
    (delivery, endpoint)
}
