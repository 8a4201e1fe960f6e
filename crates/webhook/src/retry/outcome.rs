//! What follows from one attempt, for its delivery and for the endpoint.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{LONGEST_RETRY_AFTER, Schedule};

/// An endpoint of which all attempts failed for so long is disabled.
pub const DISABLED_AFTER: TimeDelta = TimeDelta::days(5);

const TOO_MANY_REQUESTS: u16 = 429;
const SERVICE_UNAVAILABLE: u16 = 503;
const GONE: u16 = 410;

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code; `None` if there was no answer: address, connection, TLS, time-out.
    pub status: Option<u16>,
    /// What [`retry_after`](super::retry_after) read from the answer.
    pub retry_after: Option<Duration>,
}

impl Answer {
    /// Only 2xx is success: a redirect is not followed.
    pub fn succeeded(&self) -> bool {
        matches!(self.status, Some(200..=299))
    }

    /// What it says of the endpoint, whatever came before it.
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

/// What becomes of the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryNext {
    Delivered,
    /// Another attempt after this time.
    Retry(Duration),
    /// That was the last attempt.
    Dead,
}

/// What becomes of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointNext {
    Unchanged,
    /// It asked for less load: no delivery to it is attempted for this time.
    Wait(Duration),
    Disable(DisableReason),
}

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisableReason {
    /// It answered 410.
    Gone,
    /// No attempt succeeded for [`DISABLED_AFTER`].
    OnlyFailures,
}

/// What follows from the attempt number `attempt` (from 1) of a delivery.
///
/// `failing_since` is the time of the endpoint's first failure after its last success, this attempt not
/// counted; `random` is as [`Schedule::delay`] takes it. If the endpoint is disabled, the delivery keeps
/// its next attempt for the time when it is enabled again.
pub fn after_attempt(
    answer: &Answer,
    schedule: &Schedule,
    attempt: u32,
    random: f64,
    failing_since: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> (DeliveryNext, EndpointNext) {
    if answer.succeeded() {
        return (DeliveryNext::Delivered, EndpointNext::Unchanged);
    }
    let delivery = schedule
        .delay(attempt, random, answer.retry_after)
        .map_or(DeliveryNext::Dead, DeliveryNext::Retry);
    let failing_for = failing_since.map_or(TimeDelta::zero(), |since| now - since);
    let endpoint = match answer.endpoint() {
        gone @ EndpointNext::Disable(_) => gone,
        _ if failing_for >= DISABLED_AFTER => EndpointNext::Disable(DisableReason::OnlyFailures),
        other => other,
    };
    (delivery, endpoint)
}
