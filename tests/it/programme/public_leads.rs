//! Enquiries that are sent without a credential.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};

use super::World;
use crate::support::{Client, Limits, Plain, Wishes, only};

const PATH: &str = "/api/consultant-lead";

fn anyone(world: &World) -> Client {
    world.app.client("")
}

/// Sends an enquiry from this address.
async fn ask(world: &World, from: &str, body: Value) -> (u16, Value) {
    anyone(world).call("POST", PATH, Some(body), &[("x-forwarded-for", from)]).await
}

fn enquiry(email: &str, message: &str) -> Value {
    json!({"email": email, "message": message})
}

async fn stored(world: &World) -> usize {
    world.ids("/consultant-leads?limit=500").await.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_is_the_same_for_a_known_and_an_unknown_address() {
    let (world, clock) = World::at_a_fixed_time().await;
    let first = ask(&world, "192.0.2.1", enquiry("lee@globex.example", "one")).await;
    assert_eq!(first, (200, json!({"ok": true, "status": "captured"})));
    let known = ask(&world, "192.0.2.2", enquiry("lee@globex.example", "two")).await;
    let unknown = ask(&world, "192.0.2.3", enquiry("other@globex.example", "two")).await;
    let repeated = ask(&world, "192.0.2.4", enquiry("Lee@globex.example", "one")).await;
    assert_eq!((&known, &unknown, &repeated), (&first, &first, &first));
    assert_eq!(stored(&world).await, 3, "the repeated enquiry is stored once");
    clock.advance(TimeDelta::hours(24) + TimeDelta::seconds(1));
    let later = ask(&world, "192.0.2.4", enquiry("lee@globex.example", "one")).await;
    assert_eq!(later, first);
    let owner = world.app.owner_now();
    let (_, all) = owner.list_leads("").await;
    let leads = all["leads"].as_array().unwrap();
    assert_eq!(leads.len(), 4);
    assert_eq!(
        (leads[0]["created_by"].text(), &leads[0]["consent_at"]),
        ("anonymous", &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_is_kept() {
    let world = World::start().await;
    let whole = json!({
        "email": "lee@globex.example", "name": "Lee", "organisation": "Globex",
        "sector": "banking", "country": "GB", "message": "hello", "consent_marketing": true,
        "source": "fair",
    });
    assert_eq!(anyone(&world).post(PATH, whole.clone()).await.0, 200);
    let (_, all) = world.get("/consultant-leads").await;
    let lead = &all["leads"][0];
    for (asked, kept) in [
        ("email", "submitter_email"),
        ("name", "submitter_name"),
        ("organisation", "organisation"),
        ("sector", "sector"),
        ("country", "country"),
        ("message", "message"),
        ("consent_marketing", "consent_marketing"),
        ("source", "source"),
    ] {
        assert_eq!(lead[kept], whole[asked], "{asked}");
    }
    assert!(lead["consent_at"].is_string() && lead["consent_source"] == "public", "{lead:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_in_ten_minutes_from_an_address_valid_or_not() {
    let (world, clock) = World::at_a_fixed_time().await;
    let one = "203.0.113.7";
    assert_eq!(ask(&world, one, enquiry("none", "x")).await.0, 400);
    assert_eq!(ask(&world, one, only("message", "x")).await.0, 400);
    // A body that can't be read as an enquiry does not count towards the limit.
    assert_eq!(ask(&world, one, json!([])).await.0, 400);
    for n in 0..3 {
        let body = enquiry("lee@globex.example", &format!("{n}"));
        assert_eq!(ask(&world, one, body).await.0, 200, "{n}");
    }
    for body in [enquiry("lee@globex.example", "4"), enquiry("none", "x")] {
        let (status, refused) = ask(&world, one, body).await;
        assert_eq!((status, refused["error"].text()), (429, "rate_limited"));
    }
    let http = world.owner.http.clone();
    let answer = http.post(format!("{}{PATH}", world.owner.base)).header("x-forwarded-for", one);
    let answer = answer.json(&enquiry("lee@globex.example", "5")).send().await.unwrap();
    assert_eq!(answer.headers()["retry-after"], "600");
    assert_eq!(stored(&world).await, 3);
    let body = enquiry("lee@globex.example", "other");
    assert_eq!(ask(&world, "203.0.113.8", body).await.0, 200, "another address");
    clock.advance(TimeDelta::minutes(10));
    assert_eq!(ask(&world, one, enquiry("lee@globex.example", "6")).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_shows_the_enquiries_that_are_left() {
    let (world, clock) = World::at_a_fixed_time().await;
    let client = anyone(&world);
    let from = [("x-forwarded-for", "203.0.113.9")];
    let send = async |path: &str, body: &Value| {
        Limits::of_call(&client, "POST", path, Some(body), &from).await.0
    };
    let left = |calls: u32, seconds: u32| format!(r#""leads_per_address";r={calls};t={seconds}"#);
    let first = send(PATH, &enquiry("lee@globex.example", "1")).await;
    assert_eq!((first.status, first.left), (200, left(4, 600)));
    assert_eq!(first.policy, r#""leads_per_address";q=5;w=600"#);
    clock.advance(TimeDelta::seconds(60));
    let second = send(PATH, &enquiry("lee@globex.example", "2")).await;
    assert_eq!((second.status, second.left), (200, left(3, 540)));
    for _ in 0..3 {
        send(PATH, &enquiry("none", "x")).await;
    }
    let refused = send(PATH, &enquiry("lee@globex.example", "3")).await;
    assert_eq!((refused.status, refused.left), (429, left(0, 540)));
    assert_eq!(refused.policy, first.policy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_ipv6_is_one_address_and_nodes_count_together() {
    let (world, clock) = World::at_a_fixed_time().await;
    let wishes = Wishes { clock, proxied: true, ..Wishes::default() };
    let beside = world.app.beside(wishes).await;
    let second = World { owner: beside.owner(), app: beside };
    for n in 0..5 {
        let from = format!("2001:db8:0:1::{n}");
        let node = if n % 2 == 0 { &world } else { &second };
        let body = enquiry("lee@globex.example", &format!("{n}"));
        assert_eq!(ask(node, &from, body).await.0, 200, "{n}");
    }
    let body = enquiry("lee@globex.example", "x");
    assert_eq!(ask(&world, "2001:db8:0:1:ffff::9", body.clone()).await.0, 429);
    assert_eq!(ask(&second, "2001:db8:0:1:ffff::9", body.clone()).await.0, 429);
    assert_eq!(ask(&second, "2001:db8:0:2::9", body).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_an_hour_in_all() {
    let (world, clock) = World::at_a_fixed_time().await;
    assert_eq!(ask(&world, "192.0.2.1", enquiry("lee@globex.example", "x")).await.0, 200);
    let mut db = world.app.database.owner().await;
    db.batch_execute(
        "SELECT set_config('role', authority_role('system'), false); \
         UPDATE anonymous_calls SET calls = 299 WHERE kind = 'lead' AND address = ''",
    )
    .await
    .unwrap();
    assert_eq!(ask(&world, "192.0.2.2", enquiry("lee@globex.example", "y")).await.0, 200);
    assert_eq!(ask(&world, "192.0.2.3", enquiry("lee@globex.example", "z")).await.0, 429);
    clock.advance(TimeDelta::hours(1));
    assert_eq!(ask(&world, "192.0.2.3", enquiry("lee@globex.example", "z")).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotency_key_belongs_to_its_address() {
    let (world, _clock) = World::at_a_fixed_time().await;
    let keyed = async |from: &str, message: &str| {
        let headers = [("x-forwarded-for", from), ("idempotency-key", "one")];
        let body = enquiry("lee@globex.example", message);
        anyone(&world).call("POST", PATH, Some(body), &headers).await
    };
    assert_eq!(keyed("192.0.2.1", "a").await.0, 200);
    assert_eq!(keyed("192.0.2.1", "a").await.0, 200);
    let (status, refused) = keyed("192.0.2.1", "b").await;
    assert_eq!((status, refused["error"].text()), (422, "idempotency_key_reused"));
    assert_eq!(keyed("192.0.2.2", "b").await.0, 200, "another address, another key");
    assert_eq!(stored(&world).await, 2);
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// Returns all rows of all tables to which an anonymous call writes.
async fn rows(world: &World) -> String {
    let mut db = world.app.database.owner().await;
    db.batch_execute("SELECT set_config('role', authority_role('system'), false)").await.unwrap();
    let mut text = String::new();
    for table in [
        "leads",
        "record_versions",
        "idempotency_keys",
        "anonymous_calls",
        "lead_repeats",
        "address_keys",
    ] {
        let sql = format!("SELECT row_to_json(t)::text AS line FROM {table} AS t");
        let lines: Vec<Line> = diesel::sql_query(sql).load(&mut db).await.unwrap();
        for one in lines {
            writeln!(text, "{table} {}", one.line).unwrap();
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_stored_only_as_a_code_and_for_a_day() {
    let (world, clock) = World::at_a_fixed_time().await;
    let headers = [("x-forwarded-for", "203.0.113.77"), ("idempotency-key", "one")];
    let body = enquiry("lee@globex.example", "x");
    let call = anyone(&world).call("POST", PATH, Some(body), &headers).await;
    assert_eq!(call.0, 200);
    let before = rows(&world).await;
    assert!(before.contains("anonymous_calls") && before.contains("address_keys"), "{before}");
    // The address must be stored neither as text nor as bytes.
    for clear in ["203.0.113.77", "cb00714d"] {
        assert!(!before.contains(clear), "{before}");
    }
    clock.advance(TimeDelta::hours(25));
    let swept = async || {
        let left = rows(&world).await;
        !left.contains("anonymous_calls") && !left.contains("lead_repeats")
    };
    let wishes = Wishes { clock: clock.clone(), proxied: true, ..Wishes::default() };
    // Starting a node runs the worker that deletes old rows.
    let _beside = world.app.beside(wishes).await;
    for _ in 0..50 {
        if swept().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let left = rows(&world).await;
    assert!(!left.contains("anonymous_calls") && !left.contains("address_keys"), "{left}");
    assert!(!left.contains("lead_repeats"), "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counter_has_no_personal_data_and_is_renewed_each_ten_minutes() {
    let (world, clock) = World::at_a_fixed_time().await;
    let count = async || anyone(&world).get(PATH).await;
    assert_eq!(count().await, (200, json!({"ok": true, "total": 0, "last_30_days": 0})));
    assert_eq!(ask(&world, "192.0.2.1", enquiry("lee@globex.example", "x")).await.0, 200);
    assert_eq!(count().await.1["total"], 0);
    clock.advance(TimeDelta::minutes(10));
    assert_eq!(count().await.1, json!({"ok": true, "total": 1, "last_30_days": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enquiry_is_small_and_names_no_brand() {
    let (world, _clock) = World::at_a_fixed_time().await;
    let body = format!("{}{}", enquiry("lee@globex.example", "x"), " ".repeat(16 * 1024));
    let http = world.owner.http.clone();
    let request = http.post(format!("{}{PATH}", world.owner.base));
    let answer = request.header("content-type", "application/json").body(body);
    assert_eq!(answer.send().await.unwrap().status().as_u16(), 413);
    let long = [("name", 201), ("message", 4001), ("source", 201)];
    let long = long.map(|(member, length)| (member, "x".repeat(length)));
    // Only the brand's own form may name the brand as the source.
    let forged = ("source", "widget:svc:brand:01999999999999999999999999999999".to_owned());
    for (member, value) in long.into_iter().chain([forged]) {
        let mut body = enquiry("lee@globex.example", "x");
        body[member] = json!(value);
        let (status, refused) = ask(&world, "192.0.2.1", body).await;
        assert_eq!((status, &refused["details"][0]["field"]), (400, &json!(member)));
    }
    assert_eq!(stored(&world).await, 0);
}

/// Neither headers nor duration of a response reveal whether an address is known already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_an_answer_tells_whether_an_address_is_known() {
    let (world, _clock) = World::at_a_fixed_time().await;
    assert_eq!(ask(&world, "192.0.2.1", enquiry("lee@globex.example", "x")).await.0, 200);
    let http = world.owner.http.clone();
    let send = async |email: String, n: usize| {
        let request = http.post(format!("{}{PATH}", world.owner.base));
        let request = request.header("x-forwarded-for", format!("198.51.100.{n}"));
        let begin = Instant::now();
        let answer = request.json(&enquiry(&email, &format!("{n}"))).send().await.unwrap();
        let mut headers = answer.headers().clone();
        for own in ["x-request-id", "date"] {
            headers.remove(own);
        }
        let text = answer.text().await.unwrap();
        (begin.elapsed(), format!("{headers:?} {text}"))
    };
    let (mut known, mut unknown, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..40 {
        let (took, text) = send("lee@globex.example".to_owned(), n).await;
        known.push(took);
        seen.push(text);
        let (took, text) = send(format!("nobody{n}@globex.example"), n + 100).await;
        unknown.push(took);
        seen.push(text);
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    known.sort();
    unknown.sort();
    let (known, unknown) = (known[20], unknown[20]);
    let noise = Duration::from_millis(10) + known.min(unknown);
    assert!(known.abs_diff(unknown) < noise, "{known:?} and {unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anonymous_callers_leave_connections_to_others() {
    let world = World::start().await;
    let mut db = world.app.database.owner().await;
    db.batch_execute("BEGIN; LOCK TABLE anonymous_calls IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let flood = (0..30).map(|n| {
        let (client, body) = (anyone(&world), enquiry("lee@globex.example", &format!("{n}")));
        tokio::spawn(async move { client.post(PATH, body).await.0 })
    });
    let flood: Vec<_> = flood.collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begin = Instant::now();
    assert_eq!(world.get("/consultant-leads").await.0, 200);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    for call in flood {
        assert_eq!(call.await.unwrap(), 503);
    }
    db.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(stored(&world).await, 0);
}
