//! Tests hours with a fixed offset and in time zones.

use super::*;
use crate::facts::time_zone::NextOffset;

const HOUR: i32 = 3600;

fn hours(json: &str) -> Hours {
    serde_json::from_str(json).unwrap()
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn holds(hours: &Hours, time: &str) -> bool {
    hours.hold(at(time), &[])
}

/// A zone with this offset in seconds, and optionally a later one.
fn zone(name: &str, offset_seconds: i32, next: Option<(&str, i32)>) -> [ZoneOffset; 1] {
    let next = next.map(|(time, offset_seconds)| NextOffset { at: at(time), offset_seconds });
    [ZoneOffset { data: "2026a".to_owned(), name: name.to_owned(), next, offset_seconds }]
}

/// The offsets of some zones, as in the zone data of 2026.
fn offsets_of(name: &str) -> Vec<i32> {
    match name {
        "Europe/Berlin" | "Europe/Paris" => vec![HOUR, 2 * HOUR],
        "Africa/Lagos" => vec![HOUR],
        "Asia/Kathmandu" => vec![5 * HOUR + 2700],
        "Australia/Lord_Howe" => vec![10 * HOUR + 1800, 11 * HOUR],
        _ => Vec::new(),
    }
}

#[test]
fn holds_by_the_local_clock() {
    // 2026-01-05 is a Monday.
    let office = hours(r#"{"utc_offset":"+02:00","days":["mon"],"from":"09:00","to":"17:00"}"#);
    assert!(holds(&office, "2026-01-05T07:00:00Z"));
    assert!(!holds(&office, "2026-01-05T06:59:59Z"));
    assert!(!holds(&office, "2026-01-05T15:00:00Z"));
    assert!(!holds(&office, "2026-01-06T08:00:00Z"));
}

#[test]
fn runs_past_midnight() {
    let night = hours(r#"{"days":["sun"],"from":"22:00","to":"06:00"}"#);
    assert!(holds(&night, "2026-01-04T23:00:00Z") && holds(&night, "2026-01-05T05:59:00Z"));
    assert!(!holds(&night, "2026-01-05T06:00:00Z") && !holds(&night, "2026-01-05T22:30:00Z"));
}

#[test]
fn a_zone_has_its_offset_of_the_time() {
    let office = hours(r#"{"time_zone":"Europe/Berlin","from":"09:00","to":"17:00"}"#);
    let (summer, winter) = (2 * HOUR, HOUR);
    let change = Some(("2026-10-25T01:00:00Z", winter));
    for (time, offset, next, expected) in [
        ("2026-07-01T07:00:00Z", summer, None, true),
        ("2026-07-01T15:00:00Z", summer, None, false),
        ("2026-12-01T07:59:59Z", winter, None, false),
        ("2026-12-01T15:59:59Z", winter, None, true),
        // The offset of the request applies, even if it changes soon.
        ("2026-10-25T00:59:59Z", summer, change, false),
    ] {
        assert_eq!(office.hold(at(time), &zone("Europe/Berlin", offset, next)), expected, "{time}");
    }
    // The clock shows 02:30 twice on this night.
    let night = hours(r#"{"time_zone":"Europe/Berlin","from":"02:00","to":"03:00"}"#);
    for time in ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"] {
        assert!(night.hold(at(time), &zone("Europe/Berlin", summer, change)), "{time}");
    }
    let kathmandu = hours(r#"{"time_zone":"Asia/Kathmandu","from":"09:00","to":"17:00"}"#);
    let offset = zone("Asia/Kathmandu", 5 * HOUR + 2700, None);
    assert!(kathmandu.hold(at("2026-03-02T03:15:00Z"), &offset));
    assert!(!kathmandu.hold(at("2026-03-02T03:14:59Z"), &offset));
    // In Apia, Saturday begins 13 hours before it begins in UTC.
    let saturday =
        hours(r#"{"time_zone":"Pacific/Apia","days":["sat"],"from":"00:00","to":"24:00"}"#);
    let offset = zone("Pacific/Apia", 13 * HOUR, None);
    assert!(saturday.hold(at("2026-03-06T11:00:00Z"), &offset));
    assert!(!saturday.hold(at("2026-03-07T11:00:00Z"), &offset));
}

#[test]
fn hours_of_an_unknown_offset_do_not_hold() {
    let all_day = hours(r#"{"time_zone":"Europe/Berlin","from":"00:00","to":"24:00"}"#);
    assert!(!holds(&all_day, "2026-03-02T12:00:00Z"));
    assert!(!all_day.hold(at("2026-03-02T12:00:00Z"), &zone("Europe/Paris", HOUR, None)));
    // An offset of more than a day is no offset.
    let wrong = zone("Europe/Berlin", 24 * HOUR, None);
    assert!(!all_day.hold(at("2026-03-02T12:00:00Z"), &wrong));
}

#[test]
fn hours_end_at_their_local_end() {
    let end = |json: &str, time: &str, zones: &[ZoneOffset]| {
        let limit = at(time) + TimeDelta::hours(3);
        hours(json).end(at(time), limit, zones).map(|end| end.to_rfc3339())
    };
    let office = r#"{"utc_offset":"+02:00","from":"09:00","to":"17:00"}"#;
    let late = Some("2026-01-05T15:00:00+00:00".to_owned());
    assert_eq!(end(office, "2026-01-05T14:59:30.5Z", &[]), late);
    assert_eq!(end(office, "2026-01-05T11:59:00Z", &[]), None);
    // The day after continues these hours.
    let always = r#"{"from":"00:00","to":"24:00"}"#;
    assert_eq!(end(always, "2026-01-05T23:59:30Z", &[]), None);
    let monday = r#"{"days":["mon"],"from":"20:00","to":"24:00"}"#;
    let midnight = Some("2026-01-06T00:00:00+00:00".to_owned());
    assert_eq!(end(monday, "2026-01-05T23:59:30Z", &[]), midnight);
    // At 03:00 in summer time, Berlin's clock is set back to 02:00.
    let berlin = zone("Europe/Berlin", 2 * HOUR, Some(("2026-10-25T01:00:00Z", HOUR)));
    let night = r#"{"time_zone":"Europe/Berlin","from":"02:00","to":"03:30"}"#;
    let later = Some("2026-10-25T02:30:00+00:00".to_owned());
    assert_eq!(end(night, "2026-10-25T00:30:00Z", &berlin), later);
    // In spring it is set from 02:00 to 03:00, after the end of these hours.
    let berlin = zone("Europe/Berlin", HOUR, Some(("2026-03-29T01:00:00Z", 2 * HOUR)));
    let early = r#"{"time_zone":"Europe/Berlin","from":"01:00","to":"02:30"}"#;
    let change = Some("2026-03-29T01:00:00+00:00".to_owned());
    assert_eq!(end(early, "2026-03-29T00:30:00Z", &berlin), change);
    // Lord Howe's clock is set back by half an hour only, at 02:00.
    let howe = zone("Australia/Lord_Howe", 11 * HOUR, Some(("2026-04-04T15:00:00Z", 37_800)));
    let night = r#"{"time_zone":"Australia/Lord_Howe","from":"00:00","to":"02:00"}"#;
    let later = Some("2026-04-04T15:30:00+00:00".to_owned());
    assert_eq!(end(night, "2026-04-04T14:30:00Z", &howe), later);
}

#[test]
fn within_is_by_minutes_of_the_week() {
    let within = |inner: &Hours, outer: &Hours| inner.is_within(outer, &offsets_of);
    let wide = hours(r#"{"utc_offset":"+01:00","from":"08:00","to":"18:00"}"#);
    let narrow = hours(r#"{"utc_offset":"Z","days":["tue"],"from":"07:00","to":"17:00"}"#);
    assert!(within(&narrow, &wide) && !within(&wide, &narrow));
    let shifted = hours(r#"{"utc_offset":"Z","days":["tue"],"from":"06:59","to":"08:00"}"#);
    assert!(!within(&shifted, &wide));
}

#[test]
fn hours_in_another_zone_are_within_at_every_offset_or_not() {
    let within = |inner: [&str; 3], outer: [&str; 3]| {
        let of = |[clock, from, to]: [&str; 3]| {
            let member = if clock.contains('/') { "time_zone" } else { "utc_offset" };
            hours(&format!(r#"{{"{member}":"{clock}","from":"{from}","to":"{to}"}}"#))
        };
        of(inner).is_within(&of(outer), &offsets_of)
    };
    let berlin = ["Europe/Berlin", "09:00", "17:00"];
    for (inner, expected) in [
        (berlin, true),
        (["Europe/Berlin", "09:00", "17:01"], false),
        // Two zones count as independent, even if they change together.
        (["Europe/Paris", "09:00", "17:00"], false),
        (["Europe/Paris", "10:00", "16:00"], true),
        (["Africa/Lagos", "09:00", "16:00"], true),
        (["Africa/Lagos", "09:00", "16:01"], false),
        (["Africa/Lagos", "08:59", "16:00"], false),
        (["+01:00", "09:00", "16:00"], true),
        (["+01:00", "09:00", "17:00"], false),
        (["Asia/Kathmandu", "13:45", "20:45"], true),
        (["Asia/Kathmandu", "13:45", "20:46"], false),
        (["Europe/Nowhere", "12:00", "12:30"], false),
    ] {
        assert_eq!(within(inner, berlin), expected, "{inner:?}");
    }
    let howe = ["Australia/Lord_Howe", "09:00", "17:00"];
    assert!(within(["+11:00", "09:30", "17:00"], howe));
    assert!(!within(["+11:00", "09:00", "17:00"], howe));
    assert!(!within(["+11:00", "09:30", "17:00"], ["Europe/Nowhere", "00:00", "24:00"]));
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
        r#"{"from":"09:00","to":"17:00","utc_offset":null}"#,
        r#"{"from":"09:00","to":"17:00","time_zone":null}"#,
        r#"{"from":"09:00","to":"17:00","time_zone":""}"#,
        r#"{"from":"09:00","to":"17:00","time_zone":"Europe/Berlin","utc_offset":"Z"}"#,
        r#"{"from":"09:00","to":"17:00","zone":"x"}"#,
    ] {
        assert!(serde_json::from_str::<Hours>(json).is_err(), "{json}");
    }
    let all_day = hours(r#"{"from":"00:00","to":"24:00"}"#);
    assert!(holds(&all_day, "2026-01-05T23:59:59Z"));
}

/// Facts with hours keep the form that they were sealed in.
#[test]
fn hours_are_written_with_their_clock() {
    for (read, written) in [
        (r#""utc_offset":"+01:00","#, r#""utc_offset":"+01:00","#),
        (r#""time_zone":"Asia/Tokyo","#, r#""time_zone":"Asia/Tokyo","#),
        ("", r#""utc_offset":"Z","#),
    ] {
        let json =
            |clock: &str| format!(r#"{{{clock}"days":["mon"],"from":"09:00","to":"17:00"}}"#);
        let again = serde_json::to_string(&hours(&json(read))).unwrap();
        assert_eq!(again, json(written));
    }
}
