//! The time zone of a tenant and of hours: settings, decisions, simulations and replays.
//!
//! The zones `Pacific/Kiritimati` and `Pacific/Niue` are 25 hours apart. It is never the same day in
//! both, whenever the tests run.

use authority_process::clock::Clock;
use chrono::{DateTime, FixedOffset, TimeDelta};
use serde_json::{Value, json};

use super::{
    asking, demo,
    simulate::{TENANT, decided, outcome},
};
use crate::{
    evidence::golden,
    support::{Answered, Client, EVALUATE_DECISION, Members, Plain, TestApp, new_policy, only},
};

/// A zone without daylight saving time, with its offset in hours.
type Zone = (&'static str, i32);
const KIRITIMATI: Zone = ("Pacific/Kiritimati", 14);
const NIUE: Zone = ("Pacific/Niue", -11);
const DELEGATIONS: &str = "/api/v1/delegations";

/// The time in a zone now, and in two minutes: the day may end during a test.
fn times((_, hours): Zone) -> [DateTime<FixedOffset>; 2] {
    let offset = FixedOffset::east_opt(hours * 3600).unwrap();
    let now = Clock::default().now().with_timezone(&offset);
    [now, now + TimeDelta::minutes(2)]
}

/// A policy that forbids payments unless the tenant's local date is today's date in this zone.
fn only_today(zone: Zone) -> String {
    let dates = times(zone).map(|time| time.format("%Y-%m-%d").to_string());
    format!(
        "forbid(principal, action in Svc::Action::\"payment\", resource) \
         unless {{ {dates:?}.contains(context.local.date) }};"
    )
}

/// Hours in `zone`: the whole day, on the weekday that it is now in `today_in`.
fn hours(zone: Zone, today_in: Zone) -> Value {
    let mut days =
        times(today_in).map(|time| time.format("%a").to_string().to_lowercase()).to_vec();
    days.dedup();
    json!({"time_zone": zone.0, "days": days, "from": "00:00", "to": "24:00"})
}

async fn set_zone(app: &TestApp, zone: &str) {
    let (status, set) = app.owner().update_tenant("acme", only("time_zone", zone)).await;
    assert_eq!((status, set["tenant"]["time_zone"].text()), (200, zone), "{set:#}");
}

async fn activate(app: &TestApp, cedar: &str) -> String {
    let body = new_policy("own", cedar).with("name", "By time");
    let made = app.owner().create_policy(body).await.assert_status(201);
    made["policy"]["id"].as_str().unwrap().to_owned()
}

/// The offsets in a bundle.
fn zones(bundle: &str) -> Value {
    let bundle: Value = serde_json::from_str(bundle).unwrap();
    bundle["facts"]["value"]["zones"].clone()
}

#[track_caller]
fn is_sealed(bundle: &str, zone: Zone) {
    let mut zones = zones(bundle);
    assert!(zones[0]["data"].take().as_str().unwrap().starts_with("20"), "{zones:#}");
    let offset = json!({"data": null, "name": zone.0, "offset_seconds": zone.1 * 3600});
    assert_eq!(zones, json!([offset]));
}

async fn replays(app: &TestApp, id: &str) {
    let (status, proof) = app.owner().mint_replay_proof(only("decision_id", id)).await;
    assert_eq!((status, proof["result"].text()), (200, "match"), "{proof:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_follow_the_tenants_clock_and_replays_the_sealed_offset() {
    let (app, client, _) = demo().await;
    let (plain, _) = decided(&client, asking(1200.0, "DE")).await;
    activate(&app, &only_today(KIRITIMATI)).await;
    set_zone(&app, KIRITIMATI.0).await;
    let key = [("idempotency-key", "by-time")];
    let path = EVALUATE_DECISION;
    let (status, allowed) = client.call("POST", path, Some(asking(1200.0, "DE")), &key).await;
    assert_eq!((status, outcome(&allowed).1), (200, "permission_granted"), "{allowed:#}");
    let (status, repeated) = client.call("POST", path, Some(asking(1200.0, "DE")), &key).await;
    assert_eq!((status, &repeated["decision_id"]), (200, &allowed["decision_id"]));
    set_zone(&app, NIUE.0).await;
    let mut forged = asking(1200.0, "DE");
    let date = times(KIRITIMATI)[0].format("%Y-%m-%d").to_string();
    forged["context"]["local"] = json!({"date": date, "weekday": 1, "hour": 9, "minute": 0});
    for ask in [asking(1200.0, "DE"), forged] {
        let (_, denied) = decided(&client, ask).await;
        assert_eq!(outcome(&denied), ("deny", "policy_denied"), "{denied:#}");
    }
    // A permission is repeated only while the policy would permit it at its own time.
    let (status, stopped) = client.call("POST", path, Some(asking(1200.0, "DE")), &key).await;
    assert_eq!((status, stopped["error"].text()), (409, "decision_stopped"), "{stopped:#}");
    let (denied, _) = decided(&client, asking(1200.0, "DE")).await;
    set_zone(&app, "UTC").await;
    let allowed = allowed["decision_id"].as_str().unwrap();
    for (id, name, zone) in [(allowed, "local_time-1", KIRITIMATI), (&denied, "local_time-2", NIUE)]
    {
        is_sealed(&golden::replays(&app, id, name).await, zone);
        replays(&app, id).await;
    }
    let unread = golden::replays(&app, &plain, "permission_granted-1").await;
    assert_eq!(zones(&unread), Value::Null, "no policy read the local time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candidates_on_the_local_time_are_simulated() {
    let (app, client, _) = demo().await;
    set_zone(&app, "Europe/Berlin").await;
    // The clocks are set back on 2027-10-31 at 01:00 UTC: 02:30 is shown twice.
    let at_two = "forbid(principal, action in Svc::Action::\"payment\", resource) \
                  when { context.local.hour == 2 };";
    for (at, expected) in [
        ("2027-10-30T23:59:59Z", "allow_with_constraints"),
        ("2027-10-31T00:30:00Z", "deny"),
        ("2027-10-31T01:30:00Z", "deny"),
        ("2027-10-31T02:00:00Z", "allow_with_constraints"),
    ] {
        let body = json!({"request": asking(1200.0, "DE"), "at": at,
                          "candidate_policies": [{"cedar": at_two}]});
        let answer = client.simulate_decision(body).await.assert_status(200);
        assert_eq!(outcome(&answer).0, expected, "{at}: {answer:#}");
    }
    // The recorded facts have no offset, because no policy read the local time.
    set_zone(&app, KIRITIMATI.0).await;
    let (id, _) = decided(&client, asking(1200.0, "DE")).await;
    set_zone(&app, NIUE.0).await;
    for (zone, changed) in [(KIRITIMATI, 0), (NIUE, 1)] {
        let cedar = only_today(zone);
        let body = json!({"tenant_id": TENANT, "candidate_policies": [{"cedar": cedar}]});
        let impact = app.owner().impact_policies(body).await.assert_status(200);
        let found = ["considered", "changed_total", "unreadable"].map(|name| &impact[name]);
        assert_eq!(found, [&json!(1), &json!(changed), &json!(0)], "{impact:#}");
        let body = json!({"decision_id": id, "against": "recorded",
                          "candidate_policies": [{"cedar": cedar}]});
        let answer = client.simulate_decision(body).await.assert_status(200);
        assert_eq!(outcome(&answer).0 == "deny", changed == 1, "{answer:#}");
    }
    // Recorded facts are also tried at another time, with the offset of that time.
    set_zone(&app, "Europe/Berlin").await;
    activate(&app, at_two).await;
    let (id, _) = decided(&client, asking(1200.0, "DE")).await;
    for (at, expected) in [
        ("2027-07-01T00:30:00Z", "deny"),
        ("2027-12-01T01:30:00Z", "deny"),
        ("2027-12-01T00:30:00Z", "allow_with_constraints"),
    ] {
        let body = json!({"decision_id": id, "against": "recorded", "at": at});
        let answer = client.simulate_decision(body).await.assert_status(200);
        assert_eq!(outcome(&answer).0, expected, "{at}: {answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_owner_sets_a_known_zone_and_it_is_an_event() {
    let (app, client, _) = demo().await;
    let (_, found) = app.owner().get_tenant("acme").await;
    assert_eq!(found["tenant"]["time_zone"], "UTC");
    for (zone, remedy) in [
        (
            json!("Europe/Berln"),
            "`Europe/Berln` is not a known time zone; did you mean `Europe/Berlin`?",
        ),
        (
            json!("europe/berlin"),
            "`europe/berlin` is not a known time zone; did you mean `Europe/Berlin`?",
        ),
        (
            json!("+02:00"),
            "`+02:00` is not a known time zone; use an IANA name such as `Europe/Berlin`",
        ),
    ] {
        let (status, refused) = app.owner().update_tenant("acme", only("time_zone", &zone)).await;
        let fault = &refused["details"][0];
        assert_eq!((status, fault["field"].text()), (400, "time_zone"), "{refused:#}");
        assert_eq!(fault["problem"], remedy, "{refused:#}");
    }
    let admin = app.client(&app.member_token(TENANT, "admin"));
    for who in [&admin, &client] {
        let (status, refused) = who.update_tenant("acme", only("time_zone", "Europe/Berlin")).await;
        assert!(matches!(status, 401 | 403), "{refused:#}");
    }
    set_zone(&app, "Asia/Kathmandu").await;
    let (status, cleared) = app.owner().update_tenant("acme", only("time_zone", Value::Null)).await;
    assert_eq!((status, cleared["tenant"]["time_zone"].text()), (200, "UTC"), "{cleared:#}");
    let begun = std::time::Instant::now();
    let changes = loop {
        let (_, page) = app
            .owner()
            .list_events(&format!("tenant_id={TENANT}&event_type=svc.tenant.changed"))
            .await;
        let events = page["events"].as_array().unwrap();
        if events.len() == 2 {
            break events.iter().map(|event| event["data"].clone()).collect::<Vec<_>>();
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{page:#}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let change = |before, after| json!({"setting": "time_zone", "before": before, "after": after});
    assert_eq!(changes, [change("UTC", "Asia/Kathmandu"), change("Asia/Kathmandu", "UTC")]);
}

/// Creates a delegation like the demonstration tenant's, with these fields in addition.
async fn delegate(app: &TestApp, like: &str, more: Value) -> (u16, Value) {
    let (_, found) = app.owner().get(&format!("{DELEGATIONS}/{like}")).await;
    let mut body = only("tenant_id", TENANT);
    for name in ["delegator_id", "delegate_id", "actions", "can_delegate"] {
        body[name] = found["delegation"][name].clone();
    }
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    app.owner().create_delegation(body).await
}

async fn under(client: &Client, delegation: &str) -> (String, Value) {
    let ask = asking(1200.0, "DE").with("delegation_id", delegation);
    decided(client, ask).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_hold_in_their_zone_and_replay() {
    let (app, client, like) = demo().await;
    let made = async |hours: Value| {
        let made = delegate(&app, &like, only("hours", &hours)).await.assert_status(201);
        assert_eq!(made["delegation"]["hours"]["time_zone"], hours["time_zone"], "{made:#}");
        assert_eq!(made["delegation"]["hours"]["utc_offset"], Value::Null, "{made:#}");
        made["delegation"]["id"].as_str().unwrap().to_owned()
    };
    let today = made(hours(KIRITIMATI, KIRITIMATI)).await;
    let (allowed, answer) = under(&client, &today).await;
    assert_eq!(outcome(&answer).1, "permission_granted", "{answer:#}");
    let elsewhere = made(hours(NIUE, KIRITIMATI)).await;
    let (denied, answer) = under(&client, &elsewhere).await;
    assert_eq!(outcome(&answer).1, "constraint_exceeded", "{answer:#}");
    for (id, name, zone) in [(&allowed, "hours-1", KIRITIMATI), (&denied, "hours-2", NIUE)] {
        is_sealed(&golden::replays(&app, id, name).await, zone);
        replays(&app, id).await;
    }
    // A stored zone that the service does not know never holds.
    let unknown = "UPDATE delegations SET hours = jsonb_set(hours, '{time_zone}', '\"Mars/Base\"')";
    app.database.run(&format!("{unknown} WHERE id = '{today}'")).await;
    app.app.graph.catch_up().await;
    let (id, answer) = under(&client, &today).await;
    assert_eq!(outcome(&answer).1, "constraint_exceeded", "{answer:#}");
    let bundle = golden::replays(&app, &id, "hours-3").await;
    assert_eq!(zones(&bundle), Value::Null);
    replays(&app, &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_have_one_clock_of_a_known_zone() {
    let (app, _, like) = demo().await;
    let times = json!({"days": ["mon"], "from": "09:00", "to": "17:00"});
    let with = |more: Value| times.clone().and(&more);
    let both = with(json!({"time_zone": "Europe/Berlin", "utc_offset": "+01:00"}));
    let unknown = with(only("time_zone", "Europe/Berln"));
    for (hours, field, problem) in [
        (both.clone(), "hours", "not both"),
        (times.clone(), "hours", "needs `time_zone` or `utc_offset`"),
        (unknown.clone(), "hours.time_zone", "did you mean `Europe/Berlin`?"),
        (with(only("time_zone", "")), "hours.time_zone", ""),
        (with(only("utc_offset", "Europe/Berlin")), "hours.utc_offset", ""),
    ] {
        let (status, refused) = delegate(&app, &like, only("hours", &hours)).await;
        let fault = &refused["details"][0];
        assert_eq!((status, fault["field"].text()), (400, field), "{refused:#}");
        assert!(fault["problem"].as_str().unwrap().contains(problem), "{refused:#}");
    }
    for (hours, problem) in [(both, "only one"), (unknown, "did you mean `Europe/Berlin`?")] {
        let uses = json!({"agent_id": "svc:agent:acme:invoice-bot", "used_id": "x.*",
            "used_kind": "action", "constraints_json": only("hours", &hours).to_string()});
        let refused = app.owner().create_uses(uses).await.assert_status(400);
        assert!(refused.to_string().contains(problem), "{refused:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_in_another_zone_are_wider_unless_within_at_every_offset() {
    let (app, _, like) = demo().await;
    let hours = |zone: &str, from: &str, to: &str| json!({"time_zone": zone, "days": ["tue"], "from": from, "to": to});
    let parent = only("hours", hours("Europe/Berlin", "09:00", "17:00"));
    let made = delegate(&app, &like, parent).await.assert_status(201);
    let parent = &made["delegation"]["id"];
    let below = async |hours: Value| {
        let more = json!({"parent_id": parent, "delegator_id": "svc:agent:acme:invoice-bot",
                          "delegate_id": "svc:agent:acme:support-bot", "hours": hours});
        delegate(&app, &like, more).await
    };
    for (zone, from, to, expected) in [
        ("Europe/Berlin", "09:00", "17:00", 201),
        ("Europe/Berlin", "08:59", "17:00", 409),
        // In winter, Lagos has the time of Berlin; in summer it is an hour behind.
        ("Africa/Lagos", "09:00", "16:00", 201),
        ("Africa/Lagos", "09:00", "17:00", 409),
        ("Asia/Kathmandu", "13:45", "20:45", 201),
        ("Asia/Kathmandu", "13:45", "20:46", 409),
        ("Australia/Lord_Howe", "18:59", "19:30", 409),
        ("Australia/Lord_Howe", "19:00", "19:30", 201),
        // On Tuesday morning in Apia it is still Monday in Berlin.
        ("Pacific/Apia", "09:00", "10:00", 409),
    ] {
        let (status, answer) = below(hours(zone, from, to)).await;
        assert_eq!(status, expected, "{zone} {from} {to}: {answer:#}");
        if status == 409 {
            assert_eq!(answer["error"], "delegation_exceeds_parent");
            assert_eq!(answer["details"][0]["field"], "hours", "{answer:#}");
        }
    }
    let path = format!("{DELEGATIONS}/{}/narrow", parent.as_str().unwrap());
    for (zone, to, expected) in [
        ("Africa/Lagos", "17:00", 409),
        ("Africa/Lagos", "16:00", 200),
        ("Europe/Berlin", "16:00", 409),
    ] {
        let (status, answer) =
            app.owner().post(&path, only("hours", hours(zone, "09:00", to))).await;
        assert_eq!(status, expected, "{zone} {to}: {answer:#}");
    }
}
