//! Parses times and durations.

use authority_process::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};

/// A time: RFC 3339, or `now`.
pub(super) fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    if text == "now" {
        return Ok(Clock::default().now());
    }
    let moment = DateTime::parse_from_rfc3339(text);
    let moment =
        moment.map_err(|error| format!("{error}; such as 2026-11-20T15:00:00Z, or now"))?;
    Ok(moment.to_utc())
}

/// Parses a duration of at least a second: seconds, or a whole number with a unit: `s`, `m`, `h` or
/// `d`.
pub(super) fn duration(text: &str) -> Result<TimeDelta, &'static str> {
    const FORM: &str = "must be seconds, or a number with a unit, such as 90m, 26h, 4d";
    let (number, unit) = match text.find(|letter: char| !letter.is_ascii_digit()) {
        Some(end) => text.split_at(end),
        None => (text, "s"),
    };
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(FORM),
    };
    let number: u32 = number.parse().map_err(|_| FORM)?;
    let duration = TimeDelta::try_seconds(i64::from(number) * seconds);
    duration.filter(|duration| *duration > TimeDelta::zero()).ok_or(FORM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_one_unit() {
        for (text, seconds) in
            [("1", 1), ("3600", 3600), ("45s", 45), ("90m", 5400), ("26h", 93_600), ("4d", 345_600)]
        {
            assert_eq!(duration(text), Ok(TimeDelta::seconds(seconds)), "{text}");
        }
        for text in ["", "0", "0h", "h", "-1", "1.5h", "1h30m", "26 h", "1w", "99999999999"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_is_rfc_3339_or_now() {
        let at = moment("2026-11-20T16:00:00+01:00").unwrap();
        assert_eq!(at.to_rfc3339(), "2026-11-20T15:00:00+00:00");
        assert!(moment("now").is_ok());
        for text in ["", "yesterday", "2026-11-20", "2026-11-20T15:00:00"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
