//! `retry_policy` in the form a client writes.

use serde::{Deserialize, Serialize};

/// How a policy defines its delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// `schedule_seconds` lists the delays.
    #[default]
    Schedule,
    /// Each delay is `base_seconds` times a power of `factor`, and at most `max_delay_seconds`.
    Exponential,
}

/// A retry policy: either a list of delays or the four fields of an exponential policy.
///
/// [`Schedule::try_from`](super::Schedule) checks it and fills in defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Seconds from each failed attempt to the next. An empty list is the same as an omitted field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_seconds: Option<Vec<u32>>,
    /// The first delay, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_seconds: Option<u32>,
    /// The ratio of each delay to the one before, from 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest delay, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delay_seconds: Option<u32>,
    /// The number of attempts of a delivery, including the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The greatest fraction of a delay that is added at random, from 0 to 1; 0.2 if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

impl RetryPolicy {
    /// The delays of strategy `schedule`, if any.
    pub(super) fn delays(&self) -> Option<&[u32]> {
        self.schedule_seconds.as_deref().filter(|delays| !delays.is_empty())
    }
}

/// The reason for refusing a retry policy. The message is shown after the name of the member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetryPolicyError {
    #[error("is required with strategy exponential")]
    Missing(&'static str),
    #[error("belongs to strategy {belongs_to}; leave it out or set strategy")]
    OtherStrategy { member: &'static str, belongs_to: &'static str },
    #[error("must be {allowed}")]
    OutOfRange { member: &'static str, allowed: &'static str },
    #[error("has {delays} delays; 19 at most, which are 20 attempts")]
    TooManyDelays { delays: usize },
    #[error("lets a delivery take up to {seconds} seconds with jitter; 604800 (7 days) at most")]
    TooLong { member: &'static str, seconds: u64 },
}

impl RetryPolicyError {
    /// The field of the policy that must change.
    pub fn member(&self) -> &'static str {
        match self {
            Self::Missing(member)
            | Self::OtherStrategy { member, .. }
            | Self::OutOfRange { member, .. }
            | Self::TooLong { member, .. } => member,
            Self::TooManyDelays { .. } => "schedule_seconds",
        }
    }
}
