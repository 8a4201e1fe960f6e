//! Times of RFC 3339 and durations of the protobuf JSON mapping, both ways.

use std::time::SystemTime;

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, TimeDelta, Timelike, Utc};

/// Seconds since 1970 and nanoseconds, as `google.protobuf.Timestamp` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) seconds: i64,
    pub(crate) nanos: i32,
}

/// Years 1 to 9999, the range of `google.protobuf.Timestamp`.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Parses a time of RFC 3339 with an offset; `T` and `Z` in either case; no leap seconds.
pub(crate) fn parse(text: &str) -> Option<Instant> {
    let bytes = text.as_bytes();
    let punctuated = *bytes.get(4)? == b'-'
        && *bytes.get(7)? == b'-'
        && matches!(bytes.get(10)?, b'T' | b't')
        && *bytes.get(13)? == b':'
        && *bytes.get(16)? == b':';
    if !punctuated {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(digits(text, 0, 4)?, part(text, 5)?, part(text, 8)?)?;
    let (hour, minute, second) = (part(text, 11)?, part(text, 14)?, part(text, 17)?);
    let local = date.and_hms_opt(hour, minute, second)?.and_utc().timestamp();
    let mut rest = text.get(19..)?;
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|digit: char| !digit.is_ascii_digit())?;
        let (fraction, after) = fraction.split_at_checked(end)?;
        nanos = nanoseconds(fraction)?;
        rest = after;
    }
    let seconds = local.checked_sub(offset(rest)?)?;
    SECONDS.contains(&seconds).then_some(Instant { seconds, nanos })
}

/// The problem of a text that is neither a time nor a span before now.
pub const SPAN: &str = "must be a time of RFC 3339, or a span before now in seconds, minutes, hours or days, such as \
                        `-90s`, `-15m`, `-1h` or `-7d`";

/// Returns the time of RFC 3339 that is a span before now: `-90s`, `-15m`, `-1h`, `-7d`.
pub fn before(span: &str, now: SystemTime) -> Option<String> {
    let (count, unit) = span.strip_prefix('-')?.split_at_checked(span.len().checked_sub(2)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let is_number = !count.is_empty() && count.bytes().all(|digit| digit.is_ascii_digit());
    let count: i64 = is_number.then(|| count.parse().ok())??;
    let span = TimeDelta::try_seconds(count.checked_mul(seconds)?)?;
    let moment = DateTime::<Utc>::from(now).checked_sub_signed(span)?;
    SECONDS
        .contains(&moment.timestamp())
        .then(|| moment.to_rfc3339_opts(SecondsFormat::Micros, true))
}

fn digits(text: &str, from: usize, count: usize) -> Option<i32> {
    let digits = text.get(from..from + count)?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn part(text: &str, from: usize) -> Option<u32> {
    digits(text, from, 2)?.try_into().ok()
}

/// Parses one to nine digits after the point.
fn nanoseconds(fraction: &str) -> Option<i32> {
    let length = u32::try_from(fraction.len()).ok().filter(|length| (1..=9).contains(length))?;
    let digits: i32 = fraction.parse().ok()?;
    digits.checked_mul(10_i32.pow(9 - length))
}

/// Parses an offset in seconds east of UTC.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    if text.len() != 6 || text.as_bytes().get(3) != Some(&b':') {
        return None;
    }
    let (hours, minutes) = (part(text, 1)?, part(text, 4)?);
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3600 + minutes * 60))
}

/// Writes a time in UTC with `Z`, with the smallest lossless number of decimals: 0, 6 or 9. `None`
/// if it is out of range.
pub(crate) fn format(out: &mut Vec<u8>, instant: Instant) -> Option<()> {
    let nanos = u32::try_from(instant.nanos).ok()?;
    if !SECONDS.contains(&instant.seconds) {
        return None;
    }
    let time = DateTime::from_timestamp(instant.seconds, 0)?;
    let year = u32::try_from(time.year()).ok()?;
    pad(out, year, 4);
    for (mark, value) in [
        (b'-', time.month()),
        (b'-', time.day()),
        (b'T', time.hour()),
        (b':', time.minute()),
        (b':', time.second()),
    ] {
        out.push(mark);
        pad(out, value, 2);
    }
    fraction(out, nanos)?;
    out.push(b'Z');
    Some(())
}

fn fraction(out: &mut Vec<u8>, nanos: u32) -> Option<()> {
    match nanos {
        0 => {}
        1_000_000_000.. => return None,
        nanos if nanos % 1000 == 0 => {
            out.push(b'.');
            pad(out, nanos / 1000, 6);
        }
        nanos => {
            out.push(b'.');
            pad(out, nanos, 9);
        }
    }
    Some(())
}

fn pad(out: &mut Vec<u8>, value: u32, width: u32) {
    for place in (0..width).rev() {
        let [digit, ..] = (value / 10_u32.pow(place) % 10).to_le_bytes();
        out.push(b'0' + digit);
    }
}

/// Ten thousand years, the range of `google.protobuf.Duration`.
const LONGEST: i64 = 315_576_000_000;

/// Parses a duration: `3.5s`, `-0.25s`.
pub(crate) fn parse_duration(text: &str) -> Option<Instant> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds: i64 = whole.parse().ok().filter(|seconds| *seconds <= LONGEST)?;
    Some(Instant {
        seconds: sign * seconds,
        nanos: nanoseconds(fraction)? * i32::try_from(sign).ok()?,
    })
}

pub(crate) fn format_duration(out: &mut Vec<u8>, duration: Instant) -> Option<()> {
    let Instant { seconds, nanos } = duration;
    let agree = seconds == 0 || nanos == 0 || (seconds < 0) == (nanos < 0);
    if !agree || seconds.abs() > LONGEST {
        return None;
    }
    if seconds < 0 || nanos < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(seconds.unsigned_abs().to_string().as_bytes());
    fraction(out, nanos.unsigned_abs())?;
    out.push(b's');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> Option<String> {
        let mut out = Vec::new();
        format(&mut out, parse(text)?)?;
        String::from_utf8(out).ok()
    }

    #[test]
    fn reads_offsets_and_writes_utc() {
        let same = "2026-01-31T09:30:00Z";
        assert_eq!(again(same).as_deref(), Some(same));
        assert_eq!(again("2026-01-31t11:30:00.0+02:00").as_deref(), Some(same));
        assert_eq!(again("0001-01-01T00:00:00.5Z").as_deref(), Some("0001-01-01T00:00:00.500000Z"));
        assert_eq!(
            again("1969-12-31T23:59:59.000000001Z").as_deref(),
            Some("1969-12-31T23:59:59.000000001Z")
        );
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2026",
            "2026-01-31",
            "2026-01-31T09:30:00",
            "2026-01-31 09:30:00Z",
            "2026-02-30T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T09:30:60Z",
            "2026-01-31T09:30:00.Z",
            "2026-01-31T09:30:00.0123456789Z",
            "+026-01-31T09:30:00Z",
            "2026-01-31T09:30:00+2:00",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "2026-01-31T09:30:00Zx",
            "２026-01-31T09:30:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn spans_are_counted_back_from_now() {
        let now = SystemTime::from(DateTime::parse_from_rfc3339("2026-03-01T12:00:00Z").unwrap());
        for (span, moment) in [
            ("-90s", "2026-03-01T11:58:30.000000Z"),
            ("-15m", "2026-03-01T11:45:00.000000Z"),
            ("-36h", "2026-02-28T00:00:00.000000Z"),
            ("-7d", "2026-02-22T12:00:00.000000Z"),
            ("-0s", "2026-03-01T12:00:00.000000Z"),
        ] {
            assert_eq!(before(span, now).as_deref(), Some(moment));
        }
        for text in ["", "-", "-h", "1h", "-1", "-1w", "--1h", "-+1h", "-1.5h", "-1hh", "-é"] {
            assert_eq!(before(text, now), None, "{text}");
        }
        for text in ["-999999d", "-99999999999999999999d", "-9223372036854775807d"] {
            assert_eq!(before(text, now), None, "{text}: before the year 1");
        }
    }

    #[test]
    fn durations_keep_their_sign() {
        for text in ["0s", "3.500000s", "-0.250000s", "-7.000000001s"] {
            let mut out = Vec::new();
            parse_duration(text).and_then(|duration| format_duration(&mut out, duration));
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
        for text in ["", "s", "1", "-s", "1.s", ".5s", "1e3s", "315576000001s", "--1s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
