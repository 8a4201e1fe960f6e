//! What is used and left of a budget, and when its window ends: in refusals, in explanations and in
//! the grants of an agent.

use authority_process::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::support::{
    AGENT, Answered, EVALUATE, EVALUATE_DECISION, Members, SIMULATE_DECISION, new_uses, only,
};

const DAY: i64 = 86_400;
const WEEK: i64 = 7 * DAY;

/// Returns the budget without the end of its window, which must be the next multiple of its length.
#[track_caller]
fn without_end(budget: &Value) -> Value {
    let window = budget["window_seconds"].as_i64().unwrap();
    let end: DateTime<Utc> = budget["resets_at"].as_str().unwrap().parse().unwrap();
    let left = end.timestamp() - Clock::default().now().timestamp();
    assert_eq!(end.timestamp() % window, 0, "{budget:#}");
    assert!((0..=window).contains(&left), "{budget:#}");
    let mut budget = budget.clone();
    budget.as_object_mut().unwrap().remove("resets_at");
    budget
}

fn uses(holder: &str, limit: u32, used: u32, window: i64) -> Value {
    json!({"bound": "max_uses", "holder": holder, "limit": limit.to_string(),
           "used": used.to_string(), "left": limit.saturating_sub(used).to_string(),
           "currency": null, "window_seconds": window})
}

fn total(holder: &str, [limit, used, left]: [&str; 3]) -> Value {
    json!({"bound": "max_total_amount", "holder": holder, "limit": limit, "used": used,
           "left": left, "currency": "EUR", "window_seconds": DAY})
}

#[track_caller]
fn all(budgets: &Value) -> Vec<Value> {
    budgets.as_array().unwrap_or_else(|| panic!("{budgets:#}")).iter().map(without_end).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_shows_what_is_left_and_when_it_resets() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"max_uses": {"count": 1, "window_seconds": WEEK},
                        "max_total_amount": {"amount": "100", "window_seconds": DAY}});
    let lent = lent(&app, &delegation, bounds).await;
    let ask = under(&lent, 60.0);
    let (_, allowed) = client.evaluate(ask.clone()).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    assert_eq!(allowed["exceeded_budgets"], json!([]));
    // A report of a failed action gives nothing back.
    client
        .report_decision(allowed["decision_id"].as_str().unwrap(), only("outcome", "failed"))
        .await
        .assert_status(200);
    let wanted = [uses(&lent, 1, 1, WEEK), total(&lent, ["100.00", "60.00", "40.00"])];
    for (path, body) in
        [(EVALUATE, &ask), (EVALUATE_DECISION, &ask), (SIMULATE_DECISION, &only("request", &ask))]
    {
        let (status, refused) = client.post(path, body.clone()).await;
        let found = (status, &refused["reason_code"]);
        assert_eq!(found, (200, &json!("constraint_exceeded")), "{path}: {refused:#}");
        assert_eq!(all(&refused["exceeded_budgets"]), wanted, "{path}: {refused:#}");
    }
    // A refusal for another bound names no budget.
    let (_, refused) = client.evaluate(asking(60_000.0, "DE")).await;
    assert_eq!(refused["reason_code"], "constraint_exceeded", "{refused:#}");
    assert_eq!(refused["exceeded_budgets"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_explanation_has_the_budget_as_fields_and_the_time_to_ask_again() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"max_uses": {"count": 1, "window_seconds": WEEK}});
    let lent = lent(&app, &delegation, bounds).await;
    let ask = under(&lent, 60.0).with("explain", true);
    let (_, allowed) = client.evaluate(ask.clone()).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    let (_, refused) = client.evaluate(ask.clone()).await;
    let finding = &refused["trace"][0]["findings"][0];
    let exceeded = &finding["exceeded"][0];
    let fields = ["bound", "holder", "limit", "asked", "currency"].map(|name| &exceeded[name]);
    let wanted = [json!("max_uses"), json!(lent), json!("1"), json!("1"), Value::Null];
    assert_eq!(fields, wanted.each_ref(), "{refused:#}");
    assert_eq!(without_end(&exceeded["budget"]), uses(&lent, 1, 1, WEEK));
    let resets_at = exceeded["budget"]["resets_at"].as_str().unwrap();
    assert!(finding["detail"].as_str().unwrap().ends_with(&format!("; resets at {resets_at}")));
    // Another delegation of the agent permits it now. Without one, the agent can only wait.
    assert_eq!(refused["smallest_change"]["kind"], "delegation", "{refused:#}");
    assert_eq!(app.owner().revoke_delegation(&delegation, None).await.0, 200);
    let (_, refused) = client.evaluate(ask).await;
    let change = &refused["smallest_change"];
    let wanted = (&json!("wait"), &json!(resets_at), &json!("allow_with_constraints"));
    assert_eq!((&change["kind"], &change["value"], &change["decision"]), wanted, "{refused:#}");
    // The recorded facts give the same fields again.
    let id = refused["decision_id"].as_str().unwrap();
    let read = app.owner().inspect_decision(id).await.assert_status(200);
    assert_eq!(read["decision"]["trace"], refused["trace"], "{read:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_show_their_own_budgets_and_those_above() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"can_delegate": true, "max_uses": {"count": 3, "window_seconds": DAY},
                        "max_total_amount": {"amount": "450.5", "window_seconds": DAY}});
    let parent = lent(&app, &delegation, bounds).await;
    let bot = "svc:agent:acme:support-bot";
    let child = json!({"tenant_id": TENANT, "actions": ["payment.execute"], "parent_id": parent,
                       "delegator_id": AGENT, "delegate_id": bot, "currency": "EUR",
                       "max_uses": {"count": 2, "window_seconds": DAY},
                       "max_total_amount": {"amount": "450.5", "window_seconds": DAY}});
    let made = app.owner().create_delegation(child).await.assert_status(201);
    let child = made["delegation"]["id"].as_str().unwrap();
    let constraints = json!({"max_uses": {"count": 5, "window_seconds": WEEK}}).to_string();
    let row = new_uses(bot, "ticket.reply").with("constraints_json", &constraints);
    let row = app.owner().create_uses(row).await.assert_status(201);
    let row = row["uses"]["id"].as_str().unwrap();

    let budgets = async |agent: &str, grant: &str| {
        let found = client.get_authority(agent).await.assert_status(200);
        let grants = found["grants"].as_array().unwrap();
        let grant = grants.iter().find(|found| found["id"] == grant).unwrap();
        all(&grant["budgets"])
    };
    let unused = [uses(&parent, 3, 0, DAY), total(&parent, ["450.50", "0.00", "450.50"])];
    assert_eq!(budgets(AGENT, &parent).await, unused);
    assert_eq!(budgets(bot, row).await, [uses(row, 5, 0, WEEK)]);
    assert_eq!(budgets(AGENT, &delegation).await, [] as [Value; 0]);

    assert_eq!(allowed(&[&client], &under(&parent, 100.25), 1).await, 1);
    let by_child = under(child, 50.0).with("subject", bot);
    assert_eq!(allowed(&[&client], &by_child, 1).await, 1);
    let ticket = json!({"subject": bot, "action": "ticket.reply"});
    let (_, answer) = client.evaluate_decision(ticket).await;
    assert_eq!(answer["reason_code"], "permission_granted", "{answer:#}");
    let above = [uses(&parent, 3, 2, DAY), total(&parent, ["450.50", "150.25", "300.25"])];
    assert_eq!(budgets(AGENT, &parent).await, above);
    let own = [uses(child, 2, 1, DAY), total(child, ["450.50", "50.00", "400.50"])];
    assert_eq!(budgets(bot, child).await, [own, above].concat());
    assert_eq!(budgets(bot, row).await, [uses(row, 5, 1, WEEK)]);

    // After narrowing below the used part, nothing is left. The next request of the child is
    // refused for the budget of its parent.
    let fewer = json!({"max_uses": {"count": 1, "window_seconds": DAY}});
    assert_eq!(app.owner().narrow_delegation(&parent, fewer).await.0, 200);
    assert_eq!(budgets(AGENT, &parent).await[0], uses(&parent, 1, 2, DAY));
    let (_, refused) = client.evaluate(by_child).await;
    assert_eq!(all(&refused["exceeded_budgets"]), [uses(&parent, 1, 2, DAY)], "{refused:#}");
}

/// A renewal continues the counters of the renewed delegation. Its budgets have the successor's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_delegation_shows_what_was_used_before() {
    let (app, client, delegation) = demo().await;
    let bounds = json!({"max_uses": {"count": 2, "window_seconds": WEEK}});
    let lent = lent(&app, &delegation, bounds).await;
    assert_eq!(allowed(&[&client], &under(&lent, 1.0), 1).await, 1);
    let ends = (Clock::default().now() + TimeDelta::days(30)).to_rfc3339();
    let (status, renewed) = app.owner().renew_delegation(&lent, only("expires_at", &ends)).await;
    assert_eq!(status / 100, 2, "{renewed:#}");
    let successor = renewed["delegation"]["id"].as_str().unwrap();
    assert_ne!(successor, lent);
    assert_eq!(allowed(&[&client], &under(successor, 1.0), 1).await, 1);
    let (_, found) = client.get_authority(AGENT).await;
    let grants = found["grants"].as_array().unwrap();
    let grant = grants.iter().find(|found| found["id"] == successor).unwrap();
    assert_eq!(all(&grant["budgets"]), [uses(successor, 2, 2, WEEK)]);
    let (_, refused) = client.evaluate(under(successor, 1.0)).await;
    assert_eq!(all(&refused["exceeded_budgets"]), [uses(successor, 2, 2, WEEK)], "{refused:#}");
}
