//! A PATCH changes the period and the bounds of relationships, without a gap or a second budget.

use std::time::Duration;

use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::{
    super::{demo, watch::Lines},
    END, TENANT, answer,
};
use crate::support::{
    Answered, Client, Members, Plain, TestApp, new_agent, new_purpose, new_uses, nothing, only,
};

const ROWS: &str = "/api/v1/relationships";
const BOT: &str = "svc:agent:acme:row-bot";
const USES: &str = "uses/item?agent_id=svc:agent:acme:row-bot&used_id=report.*&used_kind=action";

/// Starts the demonstration with another agent, which has this grant for reports.
async fn granted(more: Value) -> (TestApp, Client) {
    let (app, client, _) = demo().await;
    app.owner().create_principal(new_agent("row-bot")).await.assert_status(201);
    let purpose = new_purpose("reporting", "Reporting", &["report.*", "ticket.*"]);
    app.owner().create_purpose(purpose).await.assert_status(201);
    app.owner().create_uses(new_uses(BOT, "report.*").and(&more)).await.assert_status(201);
    (app, client)
}

async fn change(app: &TestApp, item: &str, body: Value) -> Value {
    app.owner().patch(&format!("{ROWS}/{item}"), body).await.assert_status(200)
}

fn report(amount: f64) -> Value {
    json!({"subject": BOT, "action": "report.write", "purpose": "reporting",
           "context": {"amount": amount, "currency": "EUR"}})
}

async fn reason(client: &Client) -> String {
    answer(client, report(1.0)).await["reason_code"].as_str().unwrap().to_owned()
}

fn bounds(bounds: &Value) -> Value {
    only("constraints_json", bounds.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_end_continues_a_running_permission() {
    let soon = Clock::default().now() + chrono::TimeDelta::seconds(4);
    let (app, client) = granted(only("until", soon.to_rfc3339())).await;
    let decided = answer(&client, report(1.0)).await;
    let (mut lines, _) = Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await;
    let changed = change(&app, USES, only("until", END)).await;
    assert_eq!(changed["uses"]["until"], END, "{changed:#}");
    let past = soon - Clock::default().now() + chrono::TimeDelta::seconds(1);
    let ended = tokio::time::timeout(past.to_std().unwrap(), lines.last()).await;
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(reason(&client).await, "permission_granted");
    // An earlier end of the grant ends the permission. The ended grant can then get a new period.
    let earlier = Clock::default().now() + chrono::TimeDelta::milliseconds(300);
    change(&app, USES, only("until", earlier.to_rfc3339())).await;
    assert_eq!(lines.last().await["stop_condition"], "authority.revoked");
    assert_eq!(reason(&client).await, "delegation_expired");
    let body = new_uses(BOT, "report.*");
    let (status, refused) = app.owner().post(&format!("{ROWS}/uses"), body).await;
    assert_eq!((status, refused["error"].text()), (409, "already_exists"), "{refused:#}");
    assert!(refused["message"].as_str().unwrap().contains("PATCH that record"), "{refused:#}");
    change(&app, USES, only("until", Value::Null)).await;
    assert_eq!(reason(&client).await, "permission_granted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_window_is_not_empty() {
    let uses = |seconds: u32| bounds(&json!({"max_uses": {"count": 2, "window_seconds": seconds}}));
    let (app, client) = granted(uses(86_400)).await;
    for _ in 0..2 {
        assert_eq!(reason(&client).await, "permission_granted");
    }
    for seconds in [604_800, 2_592_000, 86_400] {
        change(&app, USES, uses(seconds)).await;
        assert_eq!(reason(&client).await, "constraint_exceeded", "{seconds}");
    }
    // Without the bound, no uses are counted. Once it is set again, the earlier uses still count.
    change(&app, USES, only("constraints_json", Value::Null)).await;
    assert_eq!(reason(&client).await, "permission_granted");
    change(&app, USES, uses(604_800)).await;
    assert_eq!(reason(&client).await, "constraint_exceeded");
    let more = bounds(&json!({"max_uses": {"count": 3, "window_seconds": 31_536_000}}));
    change(&app, USES, more).await;
    assert_eq!(reason(&client).await, "permission_granted");
    assert_eq!(reason(&client).await, "constraint_exceeded");
    let total = |seconds: u32| {
        bounds(&json!({"currency": "EUR",
                       "max_total_amount": {"amount": "3", "window_seconds": seconds}}))
    };
    change(&app, USES, total(86_400)).await;
    assert_eq!(answer(&client, report(2.5)).await["decision"], "allow");
    change(&app, USES, total(604_800)).await;
    assert_eq!(reason(&client).await, "constraint_exceeded");
    assert_eq!(answer(&client, report(0.5)).await["decision"], "allow");
}

/// Amounts of two currencies have no sum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_budget_keeps_its_currency() {
    let total = |currency: &str| {
        bounds(&json!({"currency": currency,
                       "max_total_amount": {"amount": "3", "window_seconds": 31_536_000}}))
    };
    let (app, client) = granted(total("USD")).await;
    // The budget is still unused.
    change(&app, USES, total("EUR")).await;
    assert_eq!(answer(&client, report(2.0)).await["decision"], "allow");
    for other in [
        total("USD"),
        bounds(&only("currency", "USD")),
        bounds(&nothing()),
        only("constraints_json", Value::Null),
    ] {
        let (status, refused) = app.owner().patch(&format!("{ROWS}/{USES}"), other.clone()).await;
        let field = &refused["details"][0]["field"];
        assert_eq!((status, field), (400, &json!("constraints_json")), "{other}: {refused:#}");
    }
    change(&app, USES, bounds(&only("currency", "EUR"))).await;
    let (status, _) = app.owner().patch(&format!("{ROWS}/{USES}"), total("USD")).await;
    assert_eq!(status, 400);
    change(&app, USES, total("EUR")).await;
    assert_eq!(answer(&client, report(2.0)).await["reason_code"], "constraint_exceeded");
    assert_eq!(answer(&client, report(1.0)).await["decision"], "allow");
}

/// Two grants have counters of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_of_another_grant_stays() {
    let uses = |seconds: u32| bounds(&json!({"max_uses": {"count": 1, "window_seconds": seconds}}));
    let (app, client) = granted(uses(86_400)).await;
    let other =
        uses(86_400).with("agent_id", BOT).with("used_id", "ticket.*").with("used_kind", "action");
    app.owner().create_uses(other).await.assert_status(201);
    assert_eq!(reason(&client).await, "permission_granted");
    change(&app, &USES.replace("report.*", "ticket.*"), uses(604_800)).await;
    let mut ticket = report(1.0);
    ticket["action"] = "ticket.write".into();
    assert_eq!(answer(&client, ticket).await["decision"], "allow");
    assert_eq!(reason(&client).await, "constraint_exceeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_period_and_the_bounds_change() {
    let (app, client) = granted(nothing()).await;
    let path = format!("{ROWS}/{USES}");
    for (body, member) in [
        (only("used_id", "*"), "used_id"),
        (only("allowed", 0), "allowed"),
        (only("agent_id", "svc:agent:acme:support-bot"), "agent_id"),
        (json!({"since": END, "until": "2027-01-01T00:00:00Z"}), "until"),
        (only("constraints_json", "{\"max_uses\": 1}"), "constraints_json"),
    ] {
        let (status, refused) = app.owner().patch(&path, body.clone()).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, member), "{body}");
    }
    assert_eq!(app.owner().patch(&path.replace("report", "other"), nothing()).await.0, 404);
    assert_eq!(client.patch(&path, only("until", Value::Null)).await.0, 403, "only the owner");
    // The change is in the history, is an event and has a tag of its own.
    let (_, before) = app.owner().get(&path).await;
    let changed = change(&app, USES, json!({"notes": "x", "until": END})).await;
    assert!(changed["uses"]["updated_at"].as_str() > before["uses"]["updated_at"].as_str());
    let id = changed["uses"]["id"].as_str().unwrap();
    let begun = std::time::Instant::now();
    loop {
        let (_, found) = client.list_events("event_type=svc.capability.granted").await;
        let events = found["events"].as_array().unwrap().iter();
        let own: Vec<_> = events.filter(|event| event["data"]["authority_id"] == id).collect();
        if own.len() == 2 {
            let end = own[1]["data"]["expires_at"].as_str().unwrap();
            assert!(end.starts_with("2100-01-01T00:00:00"), "{own:#?}");
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{own:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memberships_take_a_new_period() {
    let (app, client) = granted(nothing()).await;
    let workspace = app
        .owner()
        .create_workspace(json!({"tenant_id": TENANT, "name": "Rows"}))
        .await
        .assert_status(201);
    let workspace = workspace["workspace"]["id"].as_str().unwrap();
    let team = app
        .owner()
        .create_team(json!({"tenant_id": TENANT, "name": "Rows"}))
        .await
        .assert_status(201);
    let team = team["team"]["id"].as_str().unwrap();
    let soon = (Clock::default().now() + chrono::TimeDelta::seconds(1)).to_rfc3339();
    let acts_in = json!({"principal_id": BOT, "workspace_id": workspace, "until": soon});
    app.owner().create_acts_in(acts_in).await.assert_status(201);
    let member = json!({"team_id": team, "principal_id": BOT, "left_at": soon});
    app.owner().create_member_of(member).await.assert_status(201);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let ask = report(1.0).with("workspace_id", workspace);
    let denied = answer(&client, ask.clone()).await;
    assert_eq!(denied["reason_code"], "workspace_access_missing", "{denied:#}");
    let item = format!("acts-in/item?principal_id={BOT}&workspace_id={workspace}");
    assert_eq!(change(&app, &item, only("until", END)).await["acts_in"]["until"], END);
    assert_eq!(answer(&client, ask).await["decision"], "allow");
    let item = format!("member-of/item?team_id={team}&principal_id={BOT}");
    assert_eq!(
        change(&app, &item, only("left_at", Value::Null)).await["member_of"]["left_at"],
        json!(null)
    );
    let (status, refused) =
        app.owner().patch(&format!("{ROWS}/{item}"), only("role", "owner")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "role"), "{refused:#}");
}
