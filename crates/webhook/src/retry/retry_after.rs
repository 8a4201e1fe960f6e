//! `Retry-After` (RFC 9110, 10.2.3).

use std::time::Duration;

use chrono::{DateTime, Utc};

/// What a receiver asks for counts up to 24 hours.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(86_400);

/// How long the header asks to wait from `now`: seconds, or an HTTP date in any of its three forms. A date
/// that has passed is no time at all; `None` if the value is neither.
pub fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has are more than any bound.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date: DateTime<Utc> = httpdate::parse_http_date(value).ok()?.into();
    Some((date - now).to_std().unwrap_or_default())
}
