//! The hours of the week in which an authority may be used.

use std::fmt;

use chrono::{DateTime, Datelike, FixedOffset, Timelike, Utc, Weekday};
use serde::{Deserialize, Serialize};

const MINUTES_A_DAY: u32 = 24 * 60;
const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Mon),
    ("tue", Weekday::Tue),
    ("wed", Weekday::Wed),
    ("thu", Weekday::Thu),
    ("fri", Weekday::Fri),
    ("sat", Weekday::Sat),
    ("sun", Weekday::Sun),
];

/// The reason why a text is not a set of hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoursError {
    #[error("hours.utc_offset must be `Z` or such as `+02:00`")]
    Offset,
    #[error("hours.days must name one or more of mon, tue, wed, thu, fri, sat, sun")]
    Days,
    #[error("hours.from and hours.to must be such as `09:00`, up to `24:00`, and differ")]
    Time,
}

/// The JSON form: `{utc_offset, days, from, to}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default = "utc")]
    utc_offset: String,
    #[serde(default = "every_day")]
    days: Vec<String>,
    from: String,
    to: String,
}

fn utc() -> String {
    "Z".to_owned()
}

fn every_day() -> Vec<String> {
    DAYS.map(|(word, _)| word.to_owned()).to_vec()
}

/// The span from `from` until before `to` on each of the days, at a fixed offset from UTC.
///
/// If `to` is not after `from`, the span runs past midnight and belongs to the day on which it
/// begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Hours {
    written: Written,
    offset: FixedOffset,
    days: [bool; 7],
    from: u32,
    to: u32,
}

impl Hours {
    pub fn holds(&self, at: DateTime<Utc>) -> bool {
        let local = at.with_timezone(&self.offset);
        let minute = local.hour() * 60 + local.minute();
        self.holds_at(local.weekday().num_days_from_monday() as usize, minute)
    }

    fn holds_at(&self, day: usize, minute: u32) -> bool {
        let on = |day: usize| self.days.get(day % 7).copied().unwrap_or(false);
        if self.from < self.to {
            return on(day) && (self.from..self.to).contains(&minute);
        }
        (on(day) && minute >= self.from) || (on(day + 6) && minute < self.to)
    }

    /// Whether every minute of the week in these hours is also in `outer`.
    pub fn is_within(&self, outer: &Self) -> bool {
        (0..7 * MINUTES_A_DAY).all(|utc| !self.holds_utc(utc) || outer.holds_utc(utc))
    }

    /// Whether these hours include this minute of the week in UTC, counted from Monday 00:00.
    fn holds_utc(&self, minute: u32) -> bool {
        let week = 7 * i64::from(MINUTES_A_DAY);
        let shift = i64::from(self.offset.local_minus_utc() / 60);
        let local = (i64::from(minute) + shift).rem_euclid(week);
        let local = u32::try_from(local).unwrap_or_default();
        self.holds_at((local / MINUTES_A_DAY) as usize, local % MINUTES_A_DAY)
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written { utc_offset, days, from, to: until } = &self.written;
        write!(to, "{} {from} to {until} {utc_offset}", days.join(" "))
    }
}

impl TryFrom<Written> for Hours {
    type Error = HoursError;

    fn try_from(written: Written) -> Result<Self, HoursError> {
        let offset = read_offset(&written.utc_offset).ok_or(HoursError::Offset)?;
        let mut days = [false; 7];
        for word in &written.days {
            let (_, day) = DAYS.iter().find(|(known, _)| known == word).ok_or(HoursError::Days)?;
            if let Some(slot) = days.get_mut(day.num_days_from_monday() as usize) {
                *slot = true;
            }
        }
        let from = read_minute(&written.from).ok_or(HoursError::Time)?;
        let to = read_minute(&written.to).ok_or(HoursError::Time)?;
        if written.days.is_empty() {
            return Err(HoursError::Days);
        }
        if from == to || from == MINUTES_A_DAY {
            return Err(HoursError::Time);
        }
        Ok(Self { written, offset, days, from, to })
    }
}

impl From<Hours> for Written {
    fn from(hours: Hours) -> Self {
        hours.written
    }
}

fn read_minute(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let two = |s: &str| s.len() == 2 && s.bytes().all(|c| c.is_ascii_digit());
    if !two(hour) || !two(minute) {
        return None;
    }
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    (minute < 60 && hour * 60 + minute <= MINUTES_A_DAY).then_some(hour * 60 + minute)
}

fn read_offset(text: &str) -> Option<FixedOffset> {
    if text == "Z" {
        return FixedOffset::east_opt(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let minutes = i32::try_from(read_minute(rest)?).ok()?;
    (minutes <= 14 * 60).then(|| FixedOffset::east_opt(sign * minutes * 60)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(json: &str) -> Hours {
        serde_json::from_str(json).unwrap()
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn holds_by_the_local_clock() {
        // 2026-01-05 is a Monday.
        let office = hours(r#"{"utc_offset":"+02:00","days":["mon"],"from":"09:00","to":"17:00"}"#);
        assert!(office.holds(at("2026-01-05T07:00:00Z")));
        assert!(!office.holds(at("2026-01-05T06:59:59Z")));
        assert!(!office.holds(at("2026-01-05T15:00:00Z")));
        assert!(!office.holds(at("2026-01-06T08:00:00Z")));
    }

    #[test]
    fn runs_past_midnight() {
        let night = hours(r#"{"days":["sun"],"from":"22:00","to":"06:00"}"#);
        assert!(night.holds(at("2026-01-04T23:00:00Z")) && night.holds(at("2026-01-05T05:59:00Z")));
        assert!(
            !night.holds(at("2026-01-05T06:00:00Z")) && !night.holds(at("2026-01-05T22:30:00Z"))
        );
    }

    #[test]
    fn within_is_by_minutes_of_the_week() {
        let wide = hours(r#"{"utc_offset":"+01:00","from":"08:00","to":"18:00"}"#);
        let narrow = hours(r#"{"utc_offset":"Z","days":["tue"],"from":"07:00","to":"17:00"}"#);
        assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
        let shifted = hours(r#"{"utc_offset":"Z","days":["tue"],"from":"06:59","to":"08:00"}"#);
        assert!(!shifted.is_within(&wide));
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for json in [
            r#"{"from":"9:00","to":"17:00"}"#,
            r#"{"from":"09:00","to":"09:00"}"#,
            r#"{"from":"24:00","to":"09:00"}"#,
            r#"{"from":"09:00","to":"24:01"}"#,
            r#"{"from":"09:00","to":"17:00","days":[]}"#,
            r#"{"from":"09:00","to":"17:00","days":["monday"]}"#,
            r#"{"from":"09:00","to":"17:00","utc_offset":"CET"}"#,
            r#"{"from":"09:00","to":"17:00","zone":"x"}"#,
        ] {
            assert!(serde_json::from_str::<Hours>(json).is_err(), "{json}");
        }
        let all_day = hours(r#"{"from":"00:00","to":"24:00"}"#);
        assert!(all_day.holds(at("2026-01-05T23:59:59Z")));
    }
}
