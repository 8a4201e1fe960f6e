//! The local time that policies see, the policies on it in docs/guides/policies.md, and permissions
//! that end with hours in a time zone.

use std::{fs, path::Path, sync::Arc};

use authority_decision::{
    Bounds, Decision, Draft, Facts, Gathered, Reason, Request, Verdict, decide,
    facts::*,
    time_zone::{NextOffset, ZoneOffset},
    validation::{Known, Surroundings, validate},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    permitted::permitted,
    templates::compile,
    worlds::{SUBJECT, TENANT},
};

const HOUR: i32 = 3600;
const BERLIN: &str = "Europe/Berlin";
const FORBIDDEN: Reason = Reason::PolicyDenied;
const FREE: Reason = Reason::PermissionGranted;

fn moment(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn zone(name: &str, offset_seconds: i32) -> ZoneOffset {
    ZoneOffset { data: "2026f".to_owned(), name: name.to_owned(), next: None, offset_seconds }
}

/// A tenant and the offsets that its decisions are made with.
struct Place<'a> {
    time_zone: Option<&'a str>,
    zones: Vec<ZoneOffset>,
}

impl Place<'_> {
    fn utc() -> Self {
        Self { time_zone: None, zones: Vec::new() }
    }

    fn ask(&self, policies: &[&str], action: &str, context: &Value, at: &str) -> Verdict {
        let draft = Draft {
            tenant_id: TENANT.into(),
            subject: SUBJECT.into(),
            action: action.to_owned(),
            context: context.as_object().unwrap().clone(),
            ..Draft::default()
        };
        let policies = policies.iter().map(|text| compile(text).unwrap()).collect();
        let mut gathered = Gathered { policies, ..permitted() };
        let tenant = gathered.tenant.as_mut().map(Arc::make_mut).unwrap();
        tenant.time_zone = self.time_zone.map(str::to_owned);
        let facts = Facts { zones: self.zones.clone(), ..Facts::new(gathered.into()) };
        decide(&Request::new(draft).unwrap(), &facts, moment(at))
    }

    fn when(&self, condition: &str, at: &str) -> Reason {
        let forbid = format!("forbid(principal, action, resource) when {{ {condition} }};");
        self.ask(&[&forbid], "a.do", &json!({}), at).reason_code
    }
}

fn at(name: &str, offset_seconds: i32) -> Place<'_> {
    Place { time_zone: Some(name), zones: vec![zone(name, offset_seconds)] }
}

#[test]
fn policies_see_the_time_of_the_tenants_zone() {
    // A Friday evening in UTC.
    let friday = "2026-10-23T22:30:59.9Z";
    let seen = |weekday: u32, date: &str, hour: u32, minute: u32| {
        format!(
            "context.local.weekday == {weekday} && context.local.date == \"{date}\" \
             && context.local.hour == {hour} && context.local.minute == {minute}"
        )
    };
    for (place, condition) in [
        (Place::utc(), seen(5, "2026-10-23", 22, 30)),
        (at(BERLIN, 2 * HOUR), seen(6, "2026-10-24", 0, 30)),
        (at("Asia/Kathmandu", 5 * HOUR + 2700), seen(6, "2026-10-24", 4, 15)),
        (at("Pacific/Apia", 13 * HOUR), seen(6, "2026-10-24", 11, 30)),
        (at("Pacific/Pago_Pago", -11 * HOUR), seen(5, "2026-10-23", 11, 30)),
    ] {
        assert_eq!(place.when(&condition, friday), FORBIDDEN, "{condition}");
        assert_eq!(place.when(&format!("!({condition})"), friday), FREE, "{condition}");
    }
    // Monday is 1, Sunday is 7.
    for (day, weekday) in [("2026-10-19", 1), ("2026-10-25", 7)] {
        let condition = format!("context.local.weekday == {weekday}");
        assert_eq!(Place::utc().when(&condition, &format!("{day}T12:00:00Z")), FORBIDDEN);
    }
}

/// A caller's `local` is a field of `context.input`, and never the local time.
#[test]
fn a_caller_cannot_set_the_local_time() {
    let local = json!({"weekday": 1, "date": "2026-10-19", "hour": 9, "minute": 0});
    let forged = json!({"local": local, "context": {"local": local}, "time_zone": "UTC",
                        "now": "2026-10-19T09:00:00Z"});
    let place = at(BERLIN, 2 * HOUR);
    let freeze = "forbid(principal, action, resource) when { context.local.weekday >= 6 };";
    let own = "forbid(principal, action, resource) \
               when { context.input has local && context.input.local.weekday == 1 };";
    for (policy, time, expected) in [
        (freeze, "2026-10-24T12:00:00Z", FORBIDDEN),
        (freeze, "2026-10-26T12:00:00Z", FREE),
        (own, "2026-10-24T12:00:00Z", FORBIDDEN),
    ] {
        let verdict = place.ask(&[policy], "a.do", &forged, time);
        assert_eq!(verdict.reason_code, expected, "{policy} {time}");
    }
}

#[test]
fn without_the_offset_of_its_zone_a_policy_on_the_local_time_denies() {
    let monday = "2026-10-26T12:00:00Z";
    let condition = "context.local.weekday >= 6";
    for zones in [vec![], vec![zone("Europe/Paris", HOUR)], vec![zone(BERLIN, 24 * HOUR)]] {
        let place = Place { time_zone: Some(BERLIN), zones };
        assert_eq!(place.when(condition, monday), Reason::RuleError);
        assert_eq!(place.when(&format!("!({condition})"), monday), Reason::RuleError);
        assert_eq!(place.when("context.now < datetime(\"2020-01-01\")", monday), FREE);
    }
    assert_eq!(at(BERLIN, HOUR).when(condition, monday), FREE);
}

#[test]
fn only_zones_that_are_read_are_looked_up() {
    let missing = |text: &str, hours: Option<&str>, zones: Vec<ZoneOffset>| {
        let policies = vec![compile(text).unwrap()];
        let mut gathered = Gathered { policies, ..permitted() };
        gathered.tenant.as_mut().map(Arc::make_mut).unwrap().time_zone = Some(BERLIN.to_owned());
        let hours = hours.map(|clock| {
            let hours = json!({"time_zone": clock, "from": "09:00", "to": "17:00"});
            serde_json::from_value(hours).unwrap()
        });
        let row = Arc::make_mut(&mut gathered.uses[0].row);
        row.constraints = Constraints::Bounds(Bounds { hours, ..Bounds::default() }.into());
        Facts { zones, ..Facts::new(gathered.into()) }.missing_zones("a.do")
    };
    let local = "forbid(principal, action, resource) when { context.local.hour > 23 };";
    let other = "forbid(principal, action == Svc::Action::\"b.do\", resource) \
                 when { context.local.hour > 23 };";
    let now =
        "forbid(principal, action, resource) when { context.now < datetime(\"2020-01-01\") };";
    assert_eq!(missing(now, None, vec![]), [""; 0]);
    assert_eq!(missing(other, None, vec![]), [""; 0]);
    assert_eq!(missing(local, None, vec![]), [BERLIN]);
    assert_eq!(missing(local, Some("Asia/Tokyo"), vec![]), ["Asia/Tokyo", BERLIN]);
    assert_eq!(missing(local, Some(BERLIN), vec![]), [BERLIN]);
    assert_eq!(missing(local, Some("Asia/Tokyo"), vec![zone(BERLIN, HOUR)]), ["Asia/Tokyo"]);
}

#[test]
fn a_permission_ends_with_the_hours_of_its_zone() {
    let ask = |hours: Value, time: &str, valid_for_seconds: u32| {
        let mut gathered = permitted();
        let tenant = gathered.tenant.as_mut().map(Arc::make_mut).unwrap();
        tenant.valid_for_seconds = valid_for_seconds;
        let bounds =
            Bounds { hours: Some(serde_json::from_value(hours).unwrap()), ..Bounds::default() };
        let row = Arc::make_mut(&mut gathered.uses[0].row);
        row.constraints = Constraints::Bounds(bounds.into());
        let change = moment("2026-10-25T01:00:00Z");
        let berlin = ZoneOffset {
            next: Some(NextOffset { at: change, offset_seconds: HOUR }),
            ..zone(BERLIN, 2 * HOUR)
        };
        let facts = Facts { zones: vec![berlin], ..Facts::new(gathered.into()) };
        let draft = Draft {
            tenant_id: TENANT.into(),
            subject: SUBJECT.into(),
            action: "a.do".to_owned(),
            ..Draft::default()
        };
        let verdict = decide(&Request::new(draft).unwrap(), &facts, moment(time));
        (verdict.reason_code, verdict.valid_until)
    };
    let berlin = |from: &str, to: &str| json!({"time_zone": BERLIN, "from": from, "to": to});
    let ends = |hours, time: &str, end: &str| {
        assert_eq!(ask(hours, time, 3600), (FREE, Some(moment(end))), "{time}");
    };
    // 02:59:30 in summer time. Half a minute later it is 02:00 in winter time.
    let last = "2026-10-25T00:59:30Z";
    ends(berlin("02:00", "03:00"), last, "2026-10-25T01:59:30Z");
    ends(berlin("02:00", "02:15"), "2026-10-25T00:10:00Z", "2026-10-25T00:15:00Z");
    ends(berlin("02:50", "04:00"), last, "2026-10-25T01:00:00Z");
    ends(berlin("01:00", "02:30"), "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z");
    // The end is exact, also for a fixed offset and for short validity.
    let fixed = json!({"utc_offset": "+02:00", "from": "02:00", "to": "03:00"});
    assert_eq!(ask(fixed, last, 60), (FREE, Some(moment("2026-10-25T01:00:00Z"))));
    let end = moment(last) + TimeDelta::seconds(29);
    assert_eq!(ask(berlin("02:00", "03:00"), last, 29), (FREE, Some(end)));
    assert_eq!(ask(berlin("03:00", "02:00"), last, 60), (Reason::ConstraintExceeded, None));
}

/// Returns the policies of docs/guides/policies.md with these ids.
fn documented(id: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/policies.md");
    let page = fs::read_to_string(path).unwrap();
    let blocks = page.split("```cedar\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let id = format!("@id(\"{id}\")");
    blocks.filter(|block| block.contains(&id)).collect()
}

#[test]
fn the_documented_weekend_freeze_follows_the_local_clock() {
    let freeze = documented("weekend-freeze");
    assert!(validate(&freeze, &Surroundings::default(), &Known::default()).is_empty());
    let (summer, winter) = (at(BERLIN, 2 * HOUR), at(BERLIN, HOUR));
    let frozen = |place: &Place<'_>, action: &str, time: &str| {
        let verdict = place.ask(&[&freeze], action, &json!({}), time);
        match verdict.decision {
            Decision::AllowWithConstraints => false,
            decision => {
                assert_eq!(decision, Decision::Deny, "{time}");
                assert_eq!(verdict.reason_code.word(), "x_weekend_freeze", "{time}");
                true
            }
        }
    };
    // From Friday, 18:00, to Monday, 06:00, in Berlin.
    assert!(!frozen(&summer, "release.deploy", "2026-10-23T15:59:59Z"));
    assert!(frozen(&summer, "release.deploy", "2026-10-23T16:00:00Z"));
    assert!(frozen(&summer, "release.deploy", "2026-10-24T12:00:00Z"));
    assert!(frozen(&winter, "release.deploy", "2026-10-26T04:59:59Z"));
    assert!(!frozen(&winter, "release.deploy", "2026-10-26T05:00:00Z"));
    assert!(!frozen(&summer, "invoice.read", "2026-10-24T12:00:00Z"));
}

#[test]
fn the_documented_holidays_are_local_days() {
    let holidays = documented("holidays");
    assert!(validate(&holidays, &Surroundings::default(), &Known::default()).is_empty());
    let place = at(BERLIN, HOUR);
    for (time, decision) in [
        ("2026-12-24T22:59:59Z", Decision::AllowWithConstraints),
        ("2026-12-24T23:00:00Z", Decision::RequireApproval),
        ("2026-12-26T22:59:59Z", Decision::RequireApproval),
        ("2026-12-26T23:00:00Z", Decision::AllowWithConstraints),
    ] {
        let verdict = place.ask(&[&holidays], "payment.execute", &json!({}), time);
        assert_eq!(verdict.decision, decision, "{time}");
    }
}
