//! Times: always with their zone, and with the exact text beside the readable one.

use askama::filters::Safe;
use authority_model::wire::Time;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::texts as t;

/// A time as a page shows it.
#[derive(Clone)]
pub(crate) struct Moment {
    /// RFC 3339.
    pub(crate) exact: String,
    /// `24 Nov 2026, 19:58 UTC`.
    pub(crate) shown: String,
    /// `in 23 h` or `5 min ago`.
    pub(crate) distance: String,
    /// Whether it is past.
    pub(crate) past: bool,
}

impl Moment {
    pub(crate) fn of(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let away = span((at - now).abs());
        let past = at <= now;
        Self {
            exact: at.to_rfc3339_opts(SecondsFormat::Secs, true),
            shown: at.format("%-d %b %Y, %H:%M UTC").to_string(),
            distance: if past { t::kit::ago(away) } else { t::kit::within(away) },
            past,
        }
    }

    /// A time of RFC 3339.
    pub(crate) fn read(text: &str, now: DateTime<Utc>) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|at| Self::of(at.to_utc(), now))
    }

    /// `24 Nov 2026, 19:58:03 UTC`, for several times in the same minute.
    pub(crate) fn with_seconds(&self) -> String {
        let seconds = self.exact.get(17..19).unwrap_or_default();
        self.shown.replace(" UTC", &format!(":{seconds} UTC"))
    }

    /// The time as an element with the exact time.
    pub(crate) fn time(&self) -> Safe<String> {
        let Self { exact, shown, .. } = self;
        Safe(format!("<time datetime=\"{exact}\" title=\"{exact}\">{shown}</time>"))
    }

    /// The same element with the seconds.
    pub(crate) fn time_with_seconds(&self) -> Safe<String> {
        Self { shown: self.with_seconds(), ..self.clone() }.time()
    }

    /// The distance as an element with the exact time.
    pub(crate) fn away(&self) -> Safe<String> {
        Self { shown: self.distance.clone(), ..self.clone() }.time()
    }

    pub(crate) fn of_time(at: Option<Time>, now: DateTime<Utc>) -> Option<Self> {
        at.and_then(Time::moment).map(|at| Self::of(at, now))
    }
}

/// A span in its one or two largest units, rounded down: time left is never overstated.
fn span(span: TimeDelta) -> String {
    let (days, hours) = (span.num_days(), span.num_hours() % 24);
    let (minutes, seconds) = (span.num_minutes() % 60, span.num_seconds() % 60);
    match (days, span.num_hours(), span.num_minutes()) {
        (2.., _, _) => t::kit::days(days),
        (1, _, _) => t::kit::day_hours(hours),
        (_, 1.., _) if minutes > 0 => t::kit::hours_minutes(hours, minutes),
        (_, 1.., _) => t::kit::hours(hours),
        (_, _, 5..) => t::kit::minutes(minutes),
        (_, _, 1..) => t::kit::minutes_seconds(minutes, seconds),
        _ => t::kit::seconds(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_rounded_down() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (599, "9 min"),
            (3599, "59 min"),
            (3600, "1 h"),
            (86_399, "23 h 59 min"),
            (90_000, "1 day 1 h"),
            (200_000, "2 days"),
        ] {
            assert_eq!(span(TimeDelta::seconds(seconds)), expected);
        }
    }

    #[test]
    fn a_time_has_its_zone() {
        let now = DateTime::from_timestamp(1_763_928_000, 0).unwrap();
        let shown = Moment::of(now + TimeDelta::hours(2), now);
        assert_eq!(shown.shown, "23 Nov 2025, 22:00 UTC");
        assert_eq!((shown.distance.as_str(), shown.past), ("in 2 h", false));
        assert_eq!(shown.exact, "2025-11-23T22:00:00Z");
        assert_eq!(shown.with_seconds(), "23 Nov 2025, 22:00:00 UTC");
    }
}
