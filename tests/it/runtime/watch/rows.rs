//! A permission under a `uses` or acts-in relationship ends with that relationship, even if another
//! relationship permits the same.

use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::{Lines, TENANT, demo, nobody_watches};
use crate::support::{
    Answered, Client, EVALUATE, Members, Plain, TestApp, new_agent, new_purpose, new_uses, nothing,
    only,
};

const ROWS: &str = "/api/v1/relationships";

/// An agent without any authority, and a workspace that it can reach.
struct Bot {
    app: TestApp,
    client: Client,
    id: String,
    workspace: String,
}

impl Bot {
    async fn new() -> Self {
        let (app, client, _) = demo().await;
        let body = new_agent("row-bot");
        let id = app.owner().create_principal(body).await.assert_made("principal");
        let body = json!({"tenant_id": TENANT, "name": "Rows"});
        let workspace = app.owner().create_workspace(body).await.assert_made("workspace");
        Self { app, client, id, workspace }
    }

    async fn give(&self, kind: &str, body: Value) {
        self.app.owner().post(&format!("{ROWS}/{kind}"), body).await.assert_status(201);
    }

    async fn uses(&self, pattern: &str, more: Value) {
        self.give("uses", new_uses(&self.id, pattern).and(&more)).await;
    }

    async fn acts_in(&self, more: Value) {
        let body = json!({"principal_id": self.id, "workspace_id": self.workspace}).and(&more);
        self.give("acts-in", body).await;
    }

    async fn take(&self, item: &str) {
        let path = format!("{ROWS}/{item}");
        self.app.owner().call("DELETE", &path, None, &[]).await.assert_status(200);
    }

    async fn take_uses(&self, pattern: &str) {
        let path = format!("uses/item?agent_id={}&used_id={pattern}&used_kind=action", self.id);
        self.take(&path).await;
    }

    async fn take_acts_in(&self) {
        let (id, workspace) = (&self.id, &self.workspace);
        self.take(&format!("acts-in/item?principal_id={id}&workspace_id={workspace}")).await;
    }

    #[track_caller]
    fn asking(&self, more: &Value) -> Value {
        json!({"subject": self.id, "action": "report.write",
                             "purpose": "reporting", "context": {}})
        .and(more)
    }

    async fn ask(&self, key: &str, more: &Value) -> (u16, Value) {
        let headers = [("idempotency-key", key)];
        let ask = Some(self.asking(more));
        self.client.call("POST", EVALUATE, ask, &headers).await
    }

    /// Gets a permission under an idempotency key and watches it.
    async fn permitted(&self, key: &str, more: &Value) -> Lines {
        let (status, answer) = self.ask(key, more).await;
        assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
        Lines::stops(&self.client, answer["decision_id"].as_str().unwrap()).await.0
    }

    /// Checks that the stream has ended with this reason, and that the allow is not repeated.
    async fn is_over(&self, mut lines: Lines, key: &str, more: &Value, reason: &str) {
        let event = lines.last().await;
        let told = (&event["kind"], &event["stop_condition"], &event["reason_code"]);
        let wanted = (&json!("stopped"), &json!("authority.revoked"), &json!(reason));
        assert_eq!(told, wanted, "{event:#}");
        let (status, answer) = self.ask(key, more).await;
        assert_eq!((status, answer["error"].text()), (409, "decision_stopped"), "{answer:#}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("authority.revoked") && message.contains(reason), "{answer:#}");
    }
}

async fn bot() -> Bot {
    let bot = Box::pin(Bot::new()).await;
    let purpose = new_purpose("reporting", "Reporting", &["report.*"]);
    bot.app.owner().create_purpose(purpose).await.assert_status(201);
    bot
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_uses_row_that_is_deleted() {
    let (bot, none) = (bot().await, nothing());
    bot.uses("report.*", nothing()).await;
    let lines = bot.permitted("u-1", &none).await;
    let (status, again) = bot.ask("u-1", &none).await;
    assert_eq!(
        (status, again["decision"].text()),
        (200, "allow"),
        "the permission is active but its allow was not repeated"
    );
    // Another relationship that permits the same does not save the permission.
    bot.uses("report.write", nothing()).await;
    bot.take_uses("report.*").await;
    bot.is_over(lines, "u-1", &none, "permission_missing").await;
    assert_eq!(bot.ask("u-2", &none).await.1["decision"], "allow");
    // Nor does the same relationship, created again.
    bot.uses("report.*", nothing()).await;
    assert_eq!(bot.ask("u-1", &none).await.0, 409);
    nobody_watches(&bot.app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_uses_row_that_is_over_or_denies() {
    let (bot, none) = (bot().await, nothing());
    let end = Clock::default().now() + chrono::TimeDelta::seconds(2);
    bot.uses("report.*", only("until", end.to_rfc3339())).await;
    let lines = bot.permitted("o-1", &none).await;
    bot.is_over(lines, "o-1", &none, "delegation_expired").await;
    let late = (Clock::default().now() - end).num_milliseconds();
    assert!((0..2000).contains(&late), "{late} ms after the end");

    bot.take_uses("report.*").await;
    bot.uses("report.*", nothing()).await;
    let lines = bot.permitted("o-2", &none).await;
    bot.app.database.run("UPDATE uses SET allowed = 0 WHERE used_id = 'report.*'").await;
    bot.is_over(lines, "o-2", &none, "capability_denied").await;

    // Another relationship denies the action, at once or from a later time on.
    for (key, since) in [("o-3", 0), ("o-4", 2)] {
        bot.take_uses("report.*").await;
        bot.uses("report.*", nothing()).await;
        let lines = bot.permitted(key, &none).await;
        let since = Clock::default().now() + chrono::TimeDelta::seconds(since);
        bot.uses("report.write", json!({"allowed": 0, "since": since.to_rfc3339()})).await;
        bot.is_over(lines, key, &none, "capability_denied").await;
        assert!((Clock::default().now() - since).num_seconds() < 2);
        bot.take_uses("report.write").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acts_in_row_that_is_deleted_or_over() {
    let bot = bot().await;
    let there = only("workspace_id", &bot.workspace);
    let allowed = only("allowed_actions_json", "[\"report.*\"]");
    bot.acts_in(allowed.clone()).await;
    let lines = bot.permitted("a-1", &there).await;
    bot.take_acts_in().await;
    bot.is_over(lines, "a-1", &there, "permission_missing").await;

    let end = Clock::default().now() + chrono::TimeDelta::seconds(2);
    let ending = allowed.clone().with("until", end.to_rfc3339());
    bot.acts_in(ending).await;
    let lines = bot.permitted("a-2", &there).await;
    bot.is_over(lines, "a-2", &there, "delegation_expired").await;
    assert!((Clock::default().now() - end).num_seconds() < 2);
}

/// The membership gave only access to the workspace, but the permission needed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_membership_that_the_permission_needed() {
    let bot = bot().await;
    let there = only("workspace_id", &bot.workspace);
    bot.uses("report.*", nothing()).await;
    bot.acts_in(nothing()).await;
    let lines = bot.permitted("m-1", &there).await;
    // A request without a workspace needed no membership.
    let none = nothing();
    let mut beside = bot.permitted("m-2", &none).await;
    bot.take_acts_in().await;
    bot.is_over(lines, "m-1", &there, "workspace_access_missing").await;

    let end = Clock::default().now() + chrono::TimeDelta::seconds(2);
    bot.acts_in(only("until", end.to_rfc3339())).await;
    let lines = bot.permitted("m-3", &there).await;
    bot.is_over(lines, "m-3", &there, "workspace_access_missing").await;
    assert!((Clock::default().now() - end).num_seconds() < 2);
    assert_eq!(bot.ask("m-2", &none).await.0, 200);
    bot.take_uses("report.*").await;
    assert_eq!(beside.last().await["reason_code"], "permission_missing");
}
