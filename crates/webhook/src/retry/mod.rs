//! When a failed attempt is repeated, and when an endpoint waits or is disabled.
//!
//! [`Schedule`] gives the delays of one delivery. [`after_attempt`] gives the consequences of one
//! attempt. [`Breaker`] decides whether a failing endpoint gets another attempt.

mod breaker;
mod error_class;
mod outcome;
mod policy;
mod retry_after;
mod schedule;

pub use breaker::{Admission, Breaker, COOLDOWN, FAILURES_TO_OPEN, LONGEST_COOLDOWN, PROBE_LEASE};
pub use error_class::ErrorClass;
pub use outcome::{
    Answer, DISABLED_AFTER, DeliveryNext, DisableReason, EndpointNext, Failing, after_attempt,
};
pub use policy::{RetryPolicy, RetryPolicyError, Strategy};
pub use retry_after::{LONGEST_RETRY_AFTER, retry_after};
pub use schedule::{DEFAULT_DELAYS, DEFAULT_JITTER, LONGEST_SPAN, MOST_ATTEMPTS, Schedule};

#[cfg(test)]
mod tests;
