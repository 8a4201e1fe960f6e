//! A calendar month in UTC, and the decisions made in it.

use std::{fmt, ops::Range, str::FromStr};

use authority_ids::DecisionId;
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc};

/// One hour in milliseconds.
const HOUR: u64 = 3_600_000;

/// A month, `2026-07`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: i32,
    month: u32,
}

impl Month {
    /// Returns the month of a time.
    pub fn of(at: DateTime<Utc>) -> Self {
        Self { year: at.year(), month: at.month() }
    }

    /// Returns the month in which a decision was made. The id contains the time.
    pub fn of_decision(id: &DecisionId) -> Option<Self> {
        let millis = i64::from_str_radix(id.hash().get(..12)?, 16).ok()?;
        DateTime::from_timestamp_millis(millis).map(Self::of)
    }

    /// Returns when a decision was made: the number of hours since 1970, and the milliseconds
    /// within the hour (four bytes, big-endian).
    pub fn time(id: &DecisionId) -> Option<(i32, [u8; 4])> {
        let millis = u64::from_str_radix(id.hash().get(..12)?, 16).ok()?;
        let rest = u32::try_from(millis % HOUR).ok()?;
        Some((i32::try_from(millis / HOUR).ok()?, rest.to_be_bytes()))
    }

    #[must_use]
    pub fn next(self) -> Self {
        match self.month {
            12 => Self { year: self.year + 1, month: 1 },
            month => Self { month: month + 1, ..self },
        }
    }

    pub fn start(self) -> DateTime<Utc> {
        let first = NaiveDate::from_ymd_opt(self.year, self.month, 1).unwrap_or_default();
        first.and_time(chrono::NaiveTime::MIN).and_utc()
    }

    /// Returns the end of the month, which is exclusive.
    pub fn end(self) -> DateTime<Utc> {
        self.next().start()
    }

    /// Returns the range of the ids of the month's decisions. Ids sort by time.
    pub fn ids(self) -> Range<String> {
        let first = |at: DateTime<Utc>| {
            DecisionId::first(u64::try_from(at.timestamp_millis()).unwrap_or_default())
        };
        first(self.start())..first(self.end())
    }

    /// Whether the month ended at least this many days ago.
    pub fn is_older(self, days: u32, now: DateTime<Utc>) -> bool {
        self.end() + TimeDelta::days(days.into()) <= now
    }
}

impl fmt::Display for Month {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:04}-{:02}", self.year, self.month)
    }
}

/// The error for a text that is not a month such as `2026-07`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a month such as 2026-07")]
pub struct NoMonth;

impl FromStr for Month {
    type Err = NoMonth;

    fn from_str(text: &str) -> Result<Self, NoMonth> {
        let (year, month) = text.split_once('-').ok_or(NoMonth)?;
        let digits = |part: &str, count| {
            part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(year, 4) || !digits(month, 2) {
            return Err(NoMonth);
        }
        let month = Self {
            year: year.parse().map_err(|_| NoMonth)?,
            month: month.parse().map_err(|_| NoMonth)?,
        };
        if (1..=12).contains(&month.month) { Ok(month) } else { Err(NoMonth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_month_has_its_decisions_and_no_others() {
        let month: Month = "2026-12".parse().unwrap();
        assert_eq!(month.to_string(), "2026-12");
        assert_eq!(
            (month.start(), month.end()),
            (time("2026-12-01T00:00:00Z"), time("2027-01-01T00:00:00Z"))
        );
        let id = |at: &str| {
            let millis = time(at).timestamp_millis().try_into().unwrap();
            DecisionId::new(millis, &[7; 32])
        };
        for (at, is_in) in [
            ("2026-11-30T23:59:59.999Z", false),
            ("2026-12-01T00:00:00Z", true),
            ("2026-12-31T23:59:59.999Z", true),
            ("2027-01-01T00:00:00Z", false),
        ] {
            let id = id(at);
            assert_eq!(month.ids().contains(&id.to_string()), is_in, "{at}");
            assert_eq!(Month::of_decision(&id) == Some(month), is_in, "{at}");
        }
    }

    #[test]
    fn it_is_due_when_all_of_it_is_old() {
        let month: Month = "2026-02".parse().unwrap();
        assert!(!month.is_older(30, time("2026-03-30T23:59:59Z")));
        assert!(month.is_older(30, time("2026-03-31T00:00:00Z")));
    }

    #[test]
    fn only_months_are_read() {
        for bad in ["2026-13", "2026-00", "2026-7", "26-07", "2026-07-01", "+026-07", ""] {
            assert_eq!(bad.parse::<Month>(), Err(NoMonth), "{bad}");
        }
    }
}
