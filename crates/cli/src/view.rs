//! The form of a command's output: for a person or for a script, and the time zone.

use authority_process::clock::Clock;
use chrono::{DateTime, FixedOffset, SecondsFormat, TimeDelta, Utc};
use jiff::{Timestamp, tz::TimeZone};

/// The choices of `--json` and `--utc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// For a script: information that only people need is not looked up.
    pub json: bool,
    /// Times in UTC instead of the local zone.
    pub utc: bool,
}

impl View {
    /// Returns a time to the second in the reader's time zone, with its offset; `None` for other
    /// text.
    pub(crate) fn time(self, text: &str) -> Option<String> {
        Some(self.written(parsed(text)?, SecondsFormat::Secs))
    }

    /// Like [`time`](Self::time), with the original fraction of a second.
    pub(crate) fn exact_time(self, text: &str) -> Option<String> {
        Some(self.written(parsed(text)?, SecondsFormat::AutoSi))
    }

    /// Returns a time and its distance from now: `2026-11-24T20:10:33Z (in 23 h)`.
    pub(crate) fn until(self, text: &str) -> String {
        match (self.time(text), left(text)) {
            (Some(shown), Some(left)) => format!("{shown} ({left})"),
            _ => crate::text::plain(text),
        }
    }

    /// Returns a time in short form, in the reader's time zone: within a day of now `15:58:38`,
    /// within half a year `21 Nov 00:48`, otherwise the date. `None` for other text.
    pub(crate) fn near(self, text: &str, now: DateTime<Utc>) -> Option<String> {
        let time = parsed(text)?;
        let form = match (time.with_timezone(&Utc) - now).num_days().abs() {
            0 => "%H:%M:%S",
            1..183 => "%-d %b %H:%M",
            _ => "%-d %b %Y",
        };
        Some(if self.utc {
            time.with_timezone(&Utc).format(form).to_string()
        } else {
            local(time).format(form).to_string()
        })
    }

    fn written(self, time: DateTime<FixedOffset>, format: SecondsFormat) -> String {
        if self.utc {
            time.with_timezone(&Utc).to_rfc3339_opts(format, true)
        } else {
            local(time).to_rfc3339_opts(format, true)
        }
    }
}

/// Returns the time in the zone of this machine: of `TZ` or of the system. In UTC if the zone is
/// unknown.
fn local(time: DateTime<FixedOffset>) -> DateTime<FixedOffset> {
    let offset = Timestamp::from_second(time.timestamp())
        .map_or(0, |time| TimeZone::system().to_offset(time).seconds());
    FixedOffset::east_opt(offset).map_or(time, |offset| time.with_timezone(&offset))
}

fn parsed(text: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text).ok()
}

/// Returns the distance of a time from now: `in 23 h`. `None` for other text.
pub(crate) fn left(text: &str) -> Option<String> {
    Some(distance(parsed(text)?.with_timezone(&Utc) - Clock::default().now()))
}

/// Formats a span in the largest unit that it contains at least twice, such as `in 23 h`. The
/// number is rounded down.
fn distance(span: TimeDelta) -> String {
    let seconds = span.num_seconds();
    let count = seconds.unsigned_abs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.iter().find(|(unit, _)| count / unit >= 2).unwrap_or(&(1, "s"));
    let length = format!("{} {}", count / unit.0, unit.1);
    if seconds < 0 { format!("{length} ago") } else { format!("in {length}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_has_the_largest_unit_that_fits_twice() {
        for (seconds, shown) in [
            (0, "in 0 s"),
            (119, "in 119 s"),
            (120, "in 2 min"),
            (86_399, "in 23 h"),
            (-172_800, "2 d ago"),
            (-1, "1 s ago"),
        ] {
            assert_eq!(distance(TimeDelta::seconds(seconds)), shown);
        }
    }

    #[test]
    fn a_near_time_has_few_letters() {
        let view = View { utc: true, json: false };
        let now = parsed("2026-11-21T12:00:00Z").unwrap().with_timezone(&Utc);
        for (time, shown) in [
            ("2026-11-21T01:48:45.9+01:00", Some("00:48:45")),
            ("2026-11-20T12:00:01Z", Some("12:00:01")),
            ("2026-11-20T12:00:00Z", Some("20 Nov 12:00")),
            ("2026-11-23T12:00:00Z", Some("23 Nov 12:00")),
            ("2026-01-02T12:00:00Z", Some("2 Jan 2026")),
            ("acme", None),
        ] {
            assert_eq!(view.near(time, now).as_deref(), shown, "{time}");
        }
    }

    #[test]
    fn only_times_are_times() {
        let view = View { utc: true, json: false };
        assert_eq!(view.time("2026-11-21T01:48:45.099622+01:00").unwrap(), "2026-11-21T00:48:45Z");
        let exact = view.exact_time("2026-11-21T00:48:45.099622Z");
        assert_eq!(exact.unwrap(), "2026-11-21T00:48:45.099622Z");
        assert_eq!(view.time("2026-11-21"), None);
    }
}
