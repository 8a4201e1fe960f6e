//! Times on the command line: of RFC 3339, or a span before now.

use authority_process::clock::Clock;
use chrono::{DateTime, NaiveDate};
use serde::Serialize;

/// The problem with any other text.
const PROBLEM: &str = "must be a day such as 2026-11-01, a time of RFC 3339, or a span before now in seconds, minutes, \
                       hours or days, such as 90s, 15m, 1h or 7d";

/// Parses a time of RFC 3339, the start of a day in UTC (`2026-11-01`), or a span before now, with
/// a dash before it or without: `1h`, `-1h`.
pub(crate) fn moment(text: &str) -> Result<String, &'static str> {
    let span = format!("-{}", text.strip_prefix('-').unwrap_or(text));
    if let Some(moment) = gateway_rest::before(&span, Clock::default().now().into()) {
        return Ok(moment);
    }
    day_or_time(text).ok_or(PROBLEM)
}

fn day_or_time(text: &str) -> Option<String> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(format!("{day}T00:00:00Z"));
    }
    DateTime::parse_from_rfc3339(text).is_ok().then(|| text.to_owned())
}

/// The end of a period; `None` without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct End(Option<String>);

/// Parses the end of a period: a time of RFC 3339, the start of a day in UTC, or `never`.
pub(crate) fn end(text: &str) -> Result<End, &'static str> {
    if text == "never" {
        return Ok(End(None));
    }
    let problem = "must be a day such as 2027-11-01, a time of RFC 3339, or `never`";
    day_or_time(text).map(|time| End(Some(time))).ok_or(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_a_span_before_now() {
        let hour_ago = moment("1h").unwrap();
        assert_eq!(hour_ago.get(..16), moment("-1h").unwrap().get(..16));
        assert!(hour_ago < moment("1m").unwrap());
        assert_eq!(moment("2026-11-21T00:48:45Z").unwrap(), "2026-11-21T00:48:45Z");
        assert_eq!(moment("2026-11-21").unwrap(), "2026-11-21T00:00:00Z");
        assert_eq!(end("2027-11-21"), Ok(End(Some("2027-11-21T00:00:00Z".to_owned()))));
        assert_eq!(end("never"), Ok(End(None)));
        assert!(end("1h").is_err() && end("").is_err());
        for other in ["yesterday", "--1h", "1", "h", "", "1w", "2026-11-31", "2026-11"] {
            assert!(moment(other).is_err(), "{other}");
        }
    }
}
