//! The hours of the week in which an authority may be used.

use std::fmt;

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta, Timelike, Utc, Weekday};
use serde::{Deserialize, Deserializer, Serialize};

use super::time_zone::{self, ZoneOffset};

const MINUTES_A_DAY: u32 = 24 * 60;
/// The offset of hours that have neither a zone nor an offset.
const UTC: &str = "Z";
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
    #[error("hours have `time_zone` and `utc_offset`: give only one")]
    TwoClocks,
    #[error("hours.time_zone must be an IANA name such as `Europe/Berlin`")]
    Zone,
    #[error("hours.days must name one or more of mon, tue, wed, thu, fri, sat, sun")]
    Days,
    #[error("hours.from and hours.to must be such as `09:00`, up to `24:00`, and differ")]
    Time,
}

/// The JSON form: `{time_zone, days, from, to}` or `{utc_offset, days, from, to}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    utc_offset: Option<String>,
    #[serde(default = "every_day")]
    days: Vec<String>,
    from: String,
    to: String,
}

/// Reads a text. Refuses null.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

fn every_day() -> Vec<String> {
    DAYS.map(|(word, _)| word.to_owned()).to_vec()
}

/// Returns every offset from UTC of a time zone, in seconds, by its name. Empty for an unknown zone.
pub type OffsetsOf<'a> = &'a dyn Fn(&str) -> Vec<i32>;

/// The clock that hours are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Clock {
    /// A fixed offset from UTC.
    Fixed(FixedOffset),
    /// The local time of a zone, by its IANA name.
    Zone(String),
}

/// The span from `from` until before `to` on each of the days, at a fixed offset from UTC or in the
/// local time of a zone.
///
/// If `to` is not after `from`, the span runs past midnight and belongs to the day on which it
/// begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Hours {
    written: Written,
    clock: Clock,
    days: [bool; 7],
    from: u32,
    to: u32,
}

impl Hours {
    /// Returns the zone of these hours. `None` if they have a fixed offset.
    pub fn time_zone(&self) -> Option<&str> {
        match &self.clock {
            Clock::Fixed(_) => None,
            Clock::Zone(name) => Some(name),
        }
    }

    /// Whether the time is within these hours. Never if the offset of their zone is unknown.
    pub(crate) fn hold(&self, at: DateTime<Utc>, zones: &[ZoneOffset]) -> bool {
        let Some(local) = self.local(at, zones) else { return false };
        let minute = local.hour() * 60 + local.minute();
        self.holds_at(local.weekday().num_days_from_monday() as usize, minute)
    }

    /// Returns when these hours end after `at`, if that is before `limit`.
    ///
    /// They can also end when the offset of their zone changes.
    pub(crate) fn end(
        &self,
        at: DateTime<Utc>,
        limit: DateTime<Utc>,
        zones: &[ZoneOffset],
    ) -> Option<DateTime<Utc>> {
        let zone = self.time_zone().and_then(|name| time_zone::named(zones, name));
        let change = zone.and_then(|zone| zone.next).map(|next| next.at);
        let mut time = at;
        while time < limit {
            if !self.hold(time, zones) {
                return Some(time);
            }
            let next = self.next_edge(self.local(time, zones)?);
            time = change.filter(|change| time < *change).map_or(next, |change| change.min(next));
        }
        None
    }

    /// Returns the next time at which hours can begin or end, or a day begins.
    fn next_edge(&self, local: DateTime<FixedOffset>) -> DateTime<Utc> {
        let minute = local.hour() * 60 + local.minute();
        let ahead = |edge: u32| (edge + 2 * MINUTES_A_DAY - minute - 1) % MINUTES_A_DAY + 1;
        let minutes = [self.from, self.to, 0].map(ahead).into_iter().min().unwrap_or(1);
        let begun = TimeDelta::seconds(local.second().into())
            + TimeDelta::nanoseconds(local.timestamp_subsec_nanos().into());
        local.to_utc() - begun + TimeDelta::minutes(minutes.into())
    }

    fn local(&self, at: DateTime<Utc>, zones: &[ZoneOffset]) -> Option<DateTime<FixedOffset>> {
        let offset = match &self.clock {
            Clock::Fixed(offset) => *offset,
            Clock::Zone(name) => time_zone::named(zones, name)?.at(at)?,
        };
        Some(at.with_timezone(&offset))
    }

    fn holds_at(&self, day: usize, minute: u32) -> bool {
        let on = |day: usize| self.days.get(day % 7).copied().unwrap_or(false);
        if self.from < self.to {
            return on(day) && (self.from..self.to).contains(&minute);
        }
        (on(day) && minute >= self.from) || (on(day + 6) && minute < self.to)
    }

    /// Whether every minute of the week in these hours is also in `outer`.
    ///
    /// Hours in different zones are compared at every pair of their offsets.
    pub fn is_within(&self, outer: &Self, offsets_of: OffsetsOf<'_>) -> bool {
        let within = |own: i32, outers: i32| {
            let mut week = 0..7 * MINUTES_A_DAY;
            week.all(|utc| !self.holds_utc(utc, own) || outer.holds_utc(utc, outers))
        };
        // Equal zones always have the same offset.
        if self.time_zone().is_some() && self.time_zone() == outer.time_zone() {
            return within(0, 0);
        }
        let (own, outers) = (self.offsets(offsets_of), outer.offsets(offsets_of));
        let known = !own.is_empty() && !outers.is_empty();
        known && own.iter().all(|own| outers.iter().all(|outer| within(*own, *outer)))
    }

    /// Returns every offset from UTC of these hours, in seconds.
    fn offsets(&self, offsets_of: OffsetsOf<'_>) -> Vec<i32> {
        match &self.clock {
            Clock::Fixed(offset) => vec![offset.local_minus_utc()],
            Clock::Zone(name) => offsets_of(name),
        }
    }

    /// Whether these hours, at an offset in seconds, include this minute of the week. The minute is
    /// counted from Monday 00:00 UTC.
    fn holds_utc(&self, minute: u32, offset: i32) -> bool {
        let week = 7 * i64::from(MINUTES_A_DAY);
        let shift = i64::from(offset / 60);
        let local = (i64::from(minute) + shift).rem_euclid(week);
        let local = u32::try_from(local).unwrap_or_default();
        self.holds_at((local / MINUTES_A_DAY) as usize, local % MINUTES_A_DAY)
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written { time_zone, utc_offset, days, from, to: until } = &self.written;
        let clock = time_zone.as_ref().or(utc_offset.as_ref()).map_or(UTC, String::as_str);
        write!(to, "{} {from} to {until} {clock}", days.join(" "))
    }
}

impl TryFrom<Written> for Hours {
    type Error = HoursError;

    fn try_from(mut written: Written) -> Result<Self, HoursError> {
        let clock = match (&written.time_zone, &written.utc_offset) {
            (Some(_), Some(_)) => return Err(HoursError::TwoClocks),
            (Some(name), None) if name.is_empty() => return Err(HoursError::Zone),
            (Some(name), None) => Clock::Zone(name.clone()),
            (None, offset) => {
                let offset = offset.as_deref().unwrap_or(UTC);
                Clock::Fixed(read_offset(offset).ok_or(HoursError::Offset)?)
            }
        };
        if matches!(clock, Clock::Fixed(_)) {
            written.utc_offset.get_or_insert_with(|| UTC.to_owned());
        }
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
        Ok(Self { written, clock, days, from, to })
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
mod tests;
