//! An attempt to sign, and what all suites share.

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};

use crate::destination::EndpointUrl;

/// How long signatures of the suites `rfc9421` and `jwt` are valid, and the maximum age of a
/// signature of `standard-webhooks/v1`.
pub const VALID_FOR: TimeDelta = TimeDelta::seconds(300);

pub(super) const CONTENT_TYPE: &str = "application/json";

/// One attempt of one delivery.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    pub event_id: &'a str,
    pub url: &'a EndpointUrl,
    /// The event's canonical bytes.
    pub body: &'a [u8],
    /// The time of this attempt, not of the event.
    pub at: DateTime<Utc>,
}

/// The reason an attempt cannot be signed: a value is not allowed in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not allowed in a header")]
pub struct SigningError(pub(super) &'static str);

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
