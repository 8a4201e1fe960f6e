//! A PATCH changes the period and the bounds of relationships, without a gap or a second budget.

use std::time::Duration;

use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::{
    super::{demo, watch::Lines},
    END, TENANT, answer,
};
use crate::support::{Client, TestApp};

const ROWS: &str = "/api/v1/relationships";
const BOT: &str = "svc:agent:acme:row-bot";
const USES: &str = "uses/item?agent_id=svc:agent:acme:row-bot&used_id=report.*&used_kind=action";

async fn made(app: &TestApp, path: &str, body: Value) -> Value {
    let (status, made) = app.owner().post(path, body).await;
    assert_eq!(status, 201, "{made:#}");
    made
}

/// Starts the demonstration with another agent, which has this grant for reports.
async fn granted(more: Value) -> (TestApp, Client) {
    let (app, client, _) = demo().await;
    let bot = json!({"tenant_id": TENANT, "principal_class": "agent", "name": "row-bot",
                     "display_name": "row-bot"});
    made(&app, "/api/v1/principals", bot).await;
    let purpose = json!({"tenant_id": TENANT, "slug": "reporting", "name": "Reporting",
                         "allowed_actions": ["report.*", "ticket.*"]});
    made(&app, "/api/v1/purposes", purpose).await;
    let mut body = json!({"agent_id": BOT, "used_id": "report.*", "used_kind": "action"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    made(&app, &format!("{ROWS}/uses"), body).await;
    (app, client)
}

async fn change(app: &TestApp, item: &str, body: Value) -> Value {
    let (status, changed) = app.owner().patch(&format!("{ROWS}/{item}"), body).await;
    assert_eq!(status, 200, "{changed:#}");
    changed
}

fn report(amount: f64) -> Value {
    json!({"subject": BOT, "action": "report.write", "purpose": "reporting",
           "context": {"amount": amount, "currency": "EUR"}})
}

async fn reason(client: &Client) -> String {
    answer(client, report(1.0)).await["reason_code"].as_str().unwrap().to_owned()
}

fn bounds(bounds: &Value) -> Value {
    json!({"constraints_json": bounds.to_string()})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_end_continues_a_running_permission() {
    let soon = Clock::default().now() + chrono::TimeDelta::seconds(4);
    let (app, client) = granted(json!({"until": soon.to_rfc3339()})).await;
    let decided = answer(&client, report(1.0)).await;
    let (mut lines, _) = Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await;
    let changed = change(&app, USES, json!({"until": END})).await;
    assert_eq!(changed["uses"]["until"], END, "{changed:#}");
    let past = soon - Clock::default().now() + chrono::TimeDelta::seconds(1);
    let ended = tokio::time::timeout(past.to_std().unwrap(), lines.last()).await;
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(reason(&client).await, "permission_granted");
    // An earlier end of the grant ends the permission. The ended grant can then get a new period.
    let earlier = Clock::default().now() + chrono::TimeDelta::milliseconds(300);
    change(&app, USES, json!({"until": earlier.to_rfc3339()})).await;
    assert_eq!(lines.last().await["stop_condition"], "authority.revoked");
    assert_eq!(reason(&client).await, "delegation_expired");
    let body = json!({"agent_id": BOT, "used_id": "report.*", "used_kind": "action"});
    let (status, refused) = app.owner().post(&format!("{ROWS}/uses"), body).await;
    assert_eq!((status, &refused["error"]), (409, &json!("already_exists")), "{refused:#}");
    assert!(refused["message"].as_str().unwrap().contains("PATCH that record"), "{refused:#}");
    change(&app, USES, json!({"until": null})).await;
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
    change(&app, USES, json!({"constraints_json": null})).await;
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
        bounds(&json!({"currency": "USD"})),
        bounds(&json!({})),
        json!({"constraints_json": null}),
    ] {
        let (status, refused) = app.owner().patch(&format!("{ROWS}/{USES}"), other.clone()).await;
        let field = &refused["details"][0]["field"];
        assert_eq!((status, field), (400, &json!("constraints_json")), "{other}: {refused:#}");
    }
    change(&app, USES, bounds(&json!({"currency": "EUR"}))).await;
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
    let mut other = uses(86_400);
    other["agent_id"] = json!(BOT);
    other["used_id"] = json!("ticket.*");
    other["used_kind"] = json!("action");
    made(&app, &format!("{ROWS}/uses"), other).await;
    assert_eq!(reason(&client).await, "permission_granted");
    change(&app, &USES.replace("report.*", "ticket.*"), uses(604_800)).await;
    let mut ticket = report(1.0);
    ticket["action"] = json!("ticket.write");
    assert_eq!(answer(&client, ticket).await["decision"], "allow");
    assert_eq!(reason(&client).await, "constraint_exceeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_period_and_the_bounds_change() {
    let (app, client) = granted(json!({})).await;
    let path = format!("{ROWS}/{USES}");
    for (body, member) in [
        (json!({"used_id": "*"}), "used_id"),
        (json!({"allowed": 0}), "allowed"),
        (json!({"agent_id": "svc:agent:acme:support-bot"}), "agent_id"),
        (json!({"since": END, "until": "2027-01-01T00:00:00Z"}), "until"),
        (json!({"constraints_json": "{\"max_uses\": 1}"}), "constraints_json"),
    ] {
        let (status, refused) = app.owner().patch(&path, body.clone()).await;
        assert_eq!((status, &refused["details"][0]["field"]), (400, &json!(member)), "{body}");
    }
    assert_eq!(app.owner().patch(&path.replace("report", "other"), json!({})).await.0, 404);
    assert_eq!(client.patch(&path, json!({"until": null})).await.0, 403, "only the owner");
    // The change is in the history, is an event and has a tag of its own.
    let (_, before) = app.owner().get(&path).await;
    let changed = change(&app, USES, json!({"notes": "x", "until": END})).await;
    assert!(changed["uses"]["updated_at"].as_str() > before["uses"]["updated_at"].as_str());
    let id = changed["uses"]["id"].as_str().unwrap();
    let begun = std::time::Instant::now();
    loop {
        let (_, found) = client.get("/v1/events?event_type=svc.capability.granted").await;
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
    let (app, client) = granted(json!({})).await;
    let workspace =
        made(&app, "/api/v1/workspaces", json!({"tenant_id": TENANT, "name": "Rows"})).await;
    let workspace = workspace["workspace"]["id"].as_str().unwrap();
    let team = made(&app, "/api/v1/teams", json!({"tenant_id": TENANT, "name": "Rows"})).await;
    let team = team["team"]["id"].as_str().unwrap();
    let soon = (Clock::default().now() + chrono::TimeDelta::seconds(1)).to_rfc3339();
    let acts_in = json!({"principal_id": BOT, "workspace_id": workspace, "until": soon});
    made(&app, &format!("{ROWS}/acts-in"), acts_in).await;
    let member = json!({"team_id": team, "principal_id": BOT, "left_at": soon});
    made(&app, &format!("{ROWS}/member-of"), member).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let mut ask = report(1.0);
    ask["workspace_id"] = json!(workspace);
    let denied = answer(&client, ask.clone()).await;
    assert_eq!(denied["reason_code"], "workspace_access_missing", "{denied:#}");
    let item = format!("acts-in/item?principal_id={BOT}&workspace_id={workspace}");
    assert_eq!(change(&app, &item, json!({"until": END})).await["acts_in"]["until"], END);
    assert_eq!(answer(&client, ask).await["decision"], "allow");
    let item = format!("member-of/item?team_id={team}&principal_id={BOT}");
    assert_eq!(
        change(&app, &item, json!({"left_at": null})).await["member_of"]["left_at"],
        json!(null)
    );
    let (status, refused) =
        app.owner().patch(&format!("{ROWS}/{item}"), json!({"role": "owner"})).await;
    assert_eq!((status, &refused["details"][0]["field"]), (400, &json!("role")), "{refused:#}");
}
