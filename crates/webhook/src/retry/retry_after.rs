//! `Retry-After` (RFC 9110, 10.2.3).

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The longest wait that a receiver can request: 24 hours.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(86_400);

/// Parses how long the header requests to wait from `now`: seconds, or an HTTP date in any of its
/// three forms. A date in the past is a wait of zero. `None` if the value is neither seconds nor a
/// date.
pub fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit in 64 bits exceeds every limit.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date: DateTime<Utc> = httpdate::parse_http_date(value).ok()?.into();
    Some((date - now).to_std().unwrap_or_default())
}
