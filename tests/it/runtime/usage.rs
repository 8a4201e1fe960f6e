//! Decisions are counted exactly once, by hour, day, tenant, agent, action and reason, even if they
//! are committed late.

mod again;
mod listed;

use authority_ids::DecisionId;
use authority_process::clock::Clock;
use authority_runtime::UsageRollUp;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::demo;
use crate::support::{Answered, Client, TestApp, Wishes, asking, new_tenant};

const ACME: &str = "svc:tenant:acme";
const OTHER: &str = "svc:tenant:other";

/// Returns SQL that stores decisions made at this time, as the service would.
fn stored(tenant: &str, decision: &str, at: DateTime<Utc>, count: u32) -> String {
    let first = DecisionId::first(u64::try_from(at.timestamp_millis()).unwrap());
    format!(
        "INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at, \
             record, kid, signature, context, context_salt, facts, facts_salt) \
         SELECT '{first}' || left(md5(n::text || '{tenant}{decision}') || md5(n::text), 52), \
             '{tenant}', 's', 'a', '{decision}', 'r', '{at}', '{{}}', 'k', '', '{{}}', '', '{{}}', '' \
         FROM generate_series(1, {count}) AS n",
        at = at.to_rfc3339(),
    )
}

/// Returns SQL that sets the roll-up's cursor as if a check had just run. The cursor may then
/// advance to one minute before that check.
fn looked(from: DateTime<Utc>) -> String {
    let first = DecisionId::first(u64::try_from(from.timestamp_millis()).unwrap());
    format!(
        "UPDATE usage_cursor SET counted_until = '{first}', seen_at = transaction_timestamp(), \
             seen_xid = pg_current_xact_id()::text::bigint"
    )
}

async fn usage(client: &Client, query: &str) -> Vec<(String, String, Value)> {
    let found = client.get(&format!("/api/v1/usage{query}")).await.assert_status(200);
    let days = found["usage"].as_array().unwrap().iter();
    days.map(|day| {
        let text = |member: &str| day[member].as_str().unwrap().to_owned();
        let counts = json!([day["allow"], day["require_approval"], day["deny"]]);
        (text("tenant_id"), text("starts_at")[..10].to_owned(), counts)
    })
    .collect()
}

/// Counts until all decisions before this time are counted. Open transactions of other tests can
/// delay it.
async fn counted(app: &TestApp, until: DateTime<Utc>) {
    let roll_up = UsageRollUp::new(app.database.store());
    for _ in 0..600 {
        while roll_up.round().await.unwrap() {}
        let (_, found) = app.owner().list_usage("").await;
        let at: DateTime<Utc> = found["counted_until"].as_str().unwrap().parse().unwrap();
        if at >= until {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("decisions are not counted");
}

fn day(at: DateTime<Utc>) -> String {
    at.date_naive().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_counted_by_day_and_tenant() {
    let (app, _, _) = demo().await;
    assert_eq!(app.owner().create_tenant(new_tenant("Other", "other")).await.0, 201);
    let now = Clock::default().now();
    counted(&app, now - TimeDelta::seconds(90)).await;
    let [recent, before, old] =
        [TimeDelta::minutes(3), TimeDelta::days(2), TimeDelta::days(1000)].map(|age| now - age);
    for (tenant, decision, at, count) in [
        (ACME, "allow", recent, 3),
        (ACME, "allow_with_constraints", recent, 2),
        (ACME, "require_approval", recent, 1),
        (ACME, "deny", recent, 4),
        (ACME, "deny", before, 7),
        (ACME, "allow", old, 1),
        (OTHER, "allow", before, 9),
        // These decisions are older than the retention of counts.
        (OTHER, "allow", now - TimeDelta::days(1100), 9),
    ] {
        app.database.run(&stored(tenant, decision, at, count)).await;
    }
    app.database.run(&looked(now - TimeDelta::days(1200))).await;
    counted(&app, recent + TimeDelta::seconds(1)).await;
    let row = |tenant: &str, at, counts: Value| (tenant.to_owned(), day(at), counts);
    let all = vec![
        row(ACME, recent, json!([5, 1, 4])),
        row(ACME, before, json!([0, 0, 7])),
        row(OTHER, before, json!([9, 0, 0])),
        row(ACME, old, json!([1, 0, 0])),
    ];
    let owner = app.owner();
    assert_eq!(usage(&owner, "").await, all);
    // A second run on another node counts no decision twice.
    let beside = app.beside(Wishes::default()).await;
    counted(&beside, recent + TimeDelta::seconds(1)).await;
    assert_eq!(usage(&beside.owner(), "").await, all);
    assert_eq!(usage(&owner, &format!("?tenant_id={OTHER}")).await, all[2..3]);
    let since = before.format("%Y-%m-%dT23:59:59Z");
    assert_eq!(usage(&owner, &format!("?since={since}")).await, all[..3]);
    let midnight = recent.format("%Y-%m-%dT00:00:00Z");
    assert_eq!(usage(&owner, &format!("?until={midnight}")).await, all[1..]);
    let yesterday = (recent - TimeDelta::days(1)).format("%Y-%m-%dT00:00:00Z");
    assert_eq!(usage(&owner, &format!("?since={yesterday}")).await, all[..1]);
    let (mut paged, mut token) = (Vec::new(), String::new());
    for _ in 0..all.len() {
        let (_, page) = owner.list_usage(&format!("limit=1&page_token={token}")).await;
        paged.push(page["usage"][0]["starts_at"].as_str().unwrap()[..10].to_owned());
        token = page["next_page_token"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(paged, all.iter().map(|(_, day, _)| day.clone()).collect::<Vec<_>>());
    assert_eq!(token, "");
    // Hours are kept for 90 days.
    assert_eq!(usage(&owner, "?period=hour").await, all[..3]);
    // All tenants can be counted together.
    let (_, together) = owner.list_usage(&format!("all_tenants=true&until={midnight}")).await;
    let totals = together["usage"].as_array().unwrap().iter().map(|day| {
        assert_eq!(day["tenant_id"], Value::Null, "{day:#}");
        json!([day["allow"], day["require_approval"], day["deny"]])
    });
    assert_eq!(totals.collect::<Vec<_>>(), [json!([9, 0, 7]), json!([1, 0, 0])]);
    // A tenant's users get only their tenant's counts, whatever filter they use.
    for (role, expected) in [("admin", 200), ("auditor", 200), ("approver", 403), ("viewer", 403)] {
        let person = app.person(ACME, role, "p@example.org");
        let (status, own) = person.list_usage("").await;
        assert_eq!(status, expected, "{role}: {own:#}");
        if status == 200 {
            let days = own["usage"].as_array().unwrap();
            assert_eq!(days.len(), 3, "{own:#}");
            assert!(days.iter().all(|day| day["tenant_id"] == ACME), "{own:#}");
            let (status, none) = person.list_usage(&format!("tenant_id={OTHER}")).await;
            assert_eq!((status, &none["usage"]), (400, &Value::Null), "{none:#}");
        }
        assert_eq!(person.get("/api/v1/usage").await.0, 403);
    }
}

/// The cursor does not pass an open transaction. A restart of the worker loses no decisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_is_committed_late_is_counted() {
    let app = TestApp::start().await;
    let now = Clock::default().now();
    counted(&app, now - TimeDelta::seconds(90)).await;
    let [early, late] = [now - TimeDelta::minutes(10), now - TimeDelta::minutes(5)];
    app.database.run(&stored(ACME, "allow", late, 2)).await;
    let mut slow = app.database.owner().await;
    slow.batch_execute(&format!("BEGIN; {}", stored(ACME, "deny", early, 1))).await.unwrap();
    app.database.run(&looked(now - TimeDelta::hours(1))).await;
    let roll_up = UsageRollUp::new(app.database.store());
    for _ in 0..5 {
        assert!(!roll_up.round().await.unwrap());
    }
    assert!(usage(&app.owner(), "").await.is_empty());
    slow.batch_execute("COMMIT").await.unwrap();
    counted(&app, late + TimeDelta::seconds(1)).await;
    let total = async || {
        let days = usage(&app.owner(), "").await;
        let number = |counts: &Value, at: usize| counts[at].as_i64().unwrap();
        let sum = |at| days.iter().map(|(.., counts)| number(counts, at)).sum::<i64>();
        [sum(0), sum(1), sum(2)]
    };
    assert_eq!(total().await, [2, 0, 1]);
    // A new worker continues from the stored cursor. Decisions made in between are counted once.
    drop(roll_up);
    app.database.run(&stored(ACME, "require_approval", late + TimeDelta::minutes(1), 3)).await;
    app.database.run(&looked(late + TimeDelta::seconds(30))).await;
    counted(&app, late + TimeDelta::minutes(2)).await;
    assert_eq!(total().await, [2, 3, 1]);
    // A database that was restored elsewhere has different transaction ids.
    app.database.run("UPDATE usage_cursor SET seen_xid = 1::bigint << 60").await;
    let again = Clock::default().now() - TimeDelta::seconds(61);
    counted(&app, again).await;
    assert_eq!(total().await, [2, 3, 1]);
}

/// End to end: decisions are counted a minute later, once no earlier decision can appear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_just_decided_is_not_counted_yet() {
    let (app, client, _) = demo().await;
    let (_, answer) = client.evaluate(asking(1200.0, "DE")).await;
    assert_eq!(answer["decision"], "allow", "{answer:#}");
    let roll_up = UsageRollUp::new(app.database.store());
    for _ in 0..10 {
        roll_up.round().await.unwrap();
    }
    assert!(usage(&app.owner(), "").await.is_empty());
    let (_, found) = app.owner().list_usage("").await;
    let until: DateTime<Utc> = found["counted_until"].as_str().unwrap().parse().unwrap();
    assert!(until < Clock::default().now() - TimeDelta::seconds(55), "{found:#}");
}
