//! Notifications: their recipients, the read marks of each person, and the stream.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::endpoints::{ADMINS, ANN, KEYS, OTHER, OWNERS, TENANT, World, body, id, made, made_at};
use crate::support::{
    Answered, Client, Members, Plain, TestApp, asking, new_principal, new_tenant, nothing, only,
};

const LIST: &str = "/api/v1/app/notifications";

/// The kinds of a person's notifications, newest first.
async fn kinds(client: &Client) -> Vec<String> {
    let list = client.list_notifications("").await.assert_status(200);
    let all = list["notifications"].as_array().unwrap().clone();
    all.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
}

async fn unread(client: &Client) -> Value {
    client.get(&format!("{LIST}/unread-count")).await.1["unread"].clone()
}

/// Adds a notification for these roles.
async fn tell(world: &World, role: &str) {
    let call = format!(
        "SELECT notify_people('webhook_endpoint.lost', '{TENANT}', '{{{role}}}', 'svc:endpoint:0')"
    );
    world.run(&call).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_decision_is_told_to_whoever_may_decide_it() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let runtime = app.client(&demo.api_key);
    let other = new_tenant("other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let mut approval = String::new();
    // A repeated request opens no other approval, and therefore sends no other notification.
    for _ in 0..2 {
        let (_, held) = runtime.evaluate(asking(25_000.0, "DE")).await;
        approval = held["approval_id"].as_str().unwrap().to_owned();
    }
    let approver = app.person(TENANT, "approver", "bob@acme.example");
    let legal = app.person(TENANT, "legal", "lea@acme.example");
    for client in [&approver, &legal, &app.person(TENANT, "admin", ANN)] {
        assert_eq!(kinds(client).await, ["approval.opened"]);
    }
    assert!(kinds(&app.person(TENANT, "auditor", ANN)).await.is_empty());
    assert!(kinds(&app.person(OTHER, "approver", ANN)).await.is_empty());
    for role in ["member", "viewer"] {
        assert_eq!(app.person(TENANT, role, ANN).list_notifications("").await.0, 403, "{role}");
    }
    let (_, list) = approver.list_notifications("").await;
    let told = &list["notifications"][0];
    assert_eq!((&told["subject_ref"], &told["read_at"]), (&json!(approval), &Value::Null));
    let members: Vec<_> = told["data"].as_object().unwrap().keys().map(String::as_str).collect();
    let ids = ["approval_id", "decision_id", "expires_at", "principal_id", "reason_code"];
    assert_eq!(members, ids, "{told:#}");

    // A person's read mark does not apply to other people.
    let read = format!("{LIST}/{}:read", told["id"].as_str().unwrap());
    let key = [("idempotency-key", "k")];
    let first = approver.call("POST", &read, Some(nothing()), &key).await.assert_status(200);
    assert!(first["notification"]["read_at"].is_string(), "{first:#}");
    assert_eq!(approver.call("POST", &read, Some(nothing()), &key).await, (200, first.clone()));
    assert_eq!(approver.post(&read, nothing()).await, (200, first));
    assert_eq!((unread(&approver).await, unread(&legal).await), (json!(0), json!(1)));
    assert_eq!(approver.get(&format!("{LIST}?unread=true")).await.1["notifications"], json!([]));
    let foreign = app.person(OTHER, "approver", ANN);
    assert_eq!(foreign.post(&read, nothing()).await.0, 404);
    let auditor = app.person(TENANT, "auditor", ANN);
    assert_eq!(auditor.post(&read, nothing()).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admins_are_told_what_became_of_endpoints_and_streams() {
    let world = World::start().await;
    let (key_id, key) = world.key().await;
    let by_key = id(&made_at(&key, KEYS, nothing()).await.0);
    made(&world.admin, nothing()).await;
    assert!(kinds(&world.admin).await.is_empty());
    made_at(&world.app.owner(), OWNERS, only("tenant_id", TENANT)).await;
    assert_eq!(kinds(&world.admin).await, ["webhook_endpoint.created"]);
    assert_eq!(world.admin.revoke_api_key(&key_id).await.0, 200);
    let (_, list) = world.admin.list_notifications("").await;
    let told = &list["notifications"][0];
    assert_eq!(
        (told["kind"].text(), &told["subject_ref"]),
        ("webhook_endpoint.paused", &json!(by_key))
    );
    assert_eq!(told["data"]["state_reason"], "key_revoked");
    let stream = json!({"tenant_id": TENANT, "name": "s", "sink": "stdout"});
    let stream = world.app.owner().create_audit_stream(stream).await.assert_status(201);
    assert_eq!(
        world
            .app
            .owner()
            .update_audit_stream(&id(&stream["audit_stream"]), only("state", "sealed"))
            .await
            .0,
        200
    );
    world
        .run(&format!(
            "UPDATE webhook_endpoints SET state = 'disabled', state_reason = 'gone' WHERE id = '{by_key}';
             UPDATE webhook_cursors SET lost_from = 1, lost_to = 7 WHERE endpoint_id = '{by_key}';
             UPDATE webhook_cursors SET sequence = 8 WHERE endpoint_id = '{by_key}'"
        ))
        .await;
    let all = [
        "webhook_endpoint.lost",
        "webhook_endpoint.disabled",
        "audit_stream.stopped",
        "webhook_endpoint.paused",
        "webhook_endpoint.created",
    ];
    assert_eq!(kinds(&world.admin).await, all);
    let approver = world.app.person(TENANT, "approver", "bob@acme.example");
    assert!(kinds(&approver).await.is_empty());
    let (_, list) = world.admin.get(&format!("{LIST}?limit=1")).await;
    assert_eq!(list["notifications"][0]["data"]["lost_to"], 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expiry_is_told_a_week_and_a_day_before_once_each() {
    let world = World::start().await;
    let (key_id, _) = world.key().await;
    let expire = async |within: &str, lasted: &str| {
        let change = format!(
            "UPDATE api_keys SET expires_at = now() + interval '{within}',
                 created_at = now() + interval '{within}' - interval '{lasted}' WHERE id = '{key_id}'"
        );
        world.run(&change).await;
        let told = world.value("SELECT notify_of_expiries()").await.unwrap();
        assert_eq!(world.value("SELECT notify_of_expiries()").await.unwrap(), "0");
        told
    };
    for (within, lasted, told) in [
        ("8 days", "90 days", "0"),
        ("6 days", "90 days", "1"),
        // A changed expiry time sends another notification.
        ("5 days", "90 days", "1"),
        ("20 hours", "90 days", "1"),
        ("-1 hour", "90 days", "0"),
        // A key that was never valid for a week, or a day, gets no notification that far ahead.
        ("6 days", "6 days 12 hours", "0"),
        ("20 hours", "23 hours", "0"),
        ("21 hours", "2 days", "1"),
    ] {
        assert_eq!(expire(within, lasted).await, told, "{within} of {lasted}");
    }
    let (_, list) = world.admin.list_notifications("").await;
    let days: Vec<_> = list["notifications"].as_array().unwrap().iter().collect();
    assert_eq!(days.len(), 4);
    assert_eq!((days[0]["kind"].text(), days[0]["data"]["days"].number()), ("api_key.expiring", 1));
    assert_eq!(days[0]["data"]["api_key_id"], json!(key_id));
    assert_eq!(world.admin.revoke_api_key(&key_id).await.0, 200);
    assert_eq!(expire("3 days", "90 days").await, "0");

    let principal = async |class: &str| {
        let body = new_principal(class, class);
        id(&world.app.owner().create_principal(body).await.1["principal"])
    };
    let body = json!({"tenant_id": TENANT, "delegator_id": principal("human").await,
                      "delegate_id": principal("agent").await, "actions": ["payment.*"],
                      "expires_at": "2100-01-01T00:00:00Z"});
    let made = world.app.owner().create_delegation(body).await.assert_status(201);
    let delegation = id(&made["delegation"]);
    world
        .run(&format!(
            "UPDATE delegations SET expires_at = now() + interval '3 days',
                 created_at = now() - interval '90 days' WHERE id = '{delegation}'"
        ))
        .await;
    assert_eq!(world.value("SELECT notify_of_expiries()").await.unwrap(), "1");
    let (_, list) = world.admin.list_notifications("").await;
    assert_eq!(list["notifications"][0]["kind"], "delegation.expiring");
    assert_eq!(list["notifications"][0]["subject_ref"], json!(delegation));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_page_and_are_read_all_at_once() {
    let world = World::start().await;
    for _ in 0..5 {
        tell(&world, "admin").await;
    }
    tell(&world, "auditor").await;
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let (_, page) = world.admin.get(&format!("{LIST}?limit=2&page_token={token}")).await;
        seen.extend(page["notifications"].as_array().unwrap().iter().map(id));
        match page["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    let mut sorted = seen.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!((seen.len(), &seen), (5, &sorted));
    assert_eq!(world.admin.get(&format!("{LIST}?page_token=AAAA")).await.0, 400);
    assert_eq!(unread(&world.admin).await, 5);
    let all = format!("{LIST}:read-all");
    assert_eq!(world.admin.post(&all, nothing()).await.1["read"], 5);
    assert_eq!(world.admin.post(&all, nothing()).await.1["read"], 0);
    assert_eq!(unread(&world.admin).await, 0);
    tell(&world, "admin").await;
    assert_eq!(unread(&world.admin).await, 1);
    // The same person in another role keeps their read marks.
    let auditor = world.app.person(TENANT, "auditor", ANN);
    assert_eq!(unread(&auditor).await, 1);
    let outsider = world.app.owner();
    assert_eq!(outsider.list_notifications("").await.0, 403);
    assert_eq!(world.key().await.1.list_notifications("").await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_are_kept_for_ninety_days() {
    let world = World::start().await;
    tell(&world, "admin").await;
    let old = |days: u32| {
        format!(
            "INSERT INTO notifications
             SELECT time_bound('svc:notification:', now() - interval '{days} days') || '0', tenant_id, kind,
                    roles, subject_ref, data, now() - interval '{days} days'
             FROM notifications ORDER BY id DESC LIMIT 1"
        )
    };
    let part = |name: &str, from: &str, to: u32| {
        format!(
            "DO $$ BEGIN EXECUTE format('CREATE TABLE {name} PARTITION OF notifications
                 FOR VALUES FROM ({from}) TO (%L)',
                 time_bound('svc:notification:', now() - interval '{to} days')); END $$;"
        )
    };
    world.run("DROP TABLE notifications_before").await;
    world.run(&part("notifications_old", "MINVALUE", 95)).await;
    world.run(&old(100)).await;
    assert_eq!(kinds(&world.admin).await.len(), 1);
    assert_eq!(world.value("SELECT drop_old_notifications()").await.unwrap(), "1");
    assert_eq!(world.value("SELECT count(*) FROM notifications").await.unwrap(), "1");
    assert_eq!(world.value("SELECT drop_old_notifications()").await.unwrap(), "0");
    let mut db = world.db().await;
    assert!(db.batch_execute("SELECT drop_old_notifications(now())").await.is_err());
}

/// A stream of server-sent events.
struct Events(reqwest::Response, String);

impl Events {
    async fn open(client: &Client, resume: Option<&str>) -> Self {
        let url = format!("{}{LIST}:stream", client.base);
        let mut request = client.http.get(url).bearer_auth(&client.token);
        request = request.header("accept", "text/event-stream");
        if let Some(id) = resume {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self(response, String::new())
    }

    /// Returns the next event with data: its id and the data.
    async fn next(&mut self) -> (String, Value) {
        let next = async {
            loop {
                if let Some(end) = self.1.find("\n\n") {
                    let rest = self.1.split_off(end + 2);
                    let event = std::mem::replace(&mut self.1, rest);
                    let line = |name: &str| {
                        event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
                    };
                    if let (Some(place), Some(data)) = (line("id: "), line("data: ")) {
                        return (place, serde_json::from_str(&data).unwrap());
                    }
                    continue;
                }
                let chunk = self.0.chunk().await.unwrap().expect("the stream goes on");
                self.1 += std::str::from_utf8(&chunk).unwrap();
            }
        };
        timeout(Duration::from_secs(20), next).await.expect("an event in time")
    }

    async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_secs(4), self.next()).await.is_err()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_sends_each_new_notification() {
    let world = World::start().await;
    tell(&world, "admin").await;
    let mut events = Events::open(&world.admin, None).await;
    // One transaction takes its id first, but another one commits before it.
    let mut late = world.db().await;
    let call = format!(
        "BEGIN; SELECT notify_people('webhook_endpoint.paused', '{TENANT}', '{{admin}}', 'svc:endpoint:1')"
    );
    late.batch_execute(&call).await.unwrap();
    tell(&world, "auditor").await;
    tell(&world, "admin").await;
    let (place, first) = events.next().await;
    assert_eq!(first["kind"], "webhook_endpoint.lost");
    late.batch_execute("COMMIT").await.unwrap();
    let (_, second) = events.next().await;
    assert_eq!(second["kind"], "webhook_endpoint.paused");
    assert!(second["id"].as_str() < first["id"].as_str());
    assert!(events.is_silent().await);
    // A client that reconnects receives at least the notifications that it missed.
    drop(events);
    tell(&world, "admin").await;
    let (_, list) = world.admin.get(&format!("{LIST}?limit=1")).await;
    let newest = &list["notifications"][0]["id"];
    let mut events = Events::open(&world.admin, Some(&place)).await;
    while events.next().await.1["id"] != *newest {}
    // The stream ends when the person is suspended.
    let suspended = new_principal("human", "Ann").with("email", ANN).with("state", "suspended");
    assert_eq!(world.app.owner().create_principal(suspended).await.0, 201);
    let ended = async { while let Ok(Some(_)) = events.0.chunk().await {} };
    timeout(Duration::from_secs(10), ended).await.expect("the stream ends");
    assert_eq!(world.admin.post(ADMINS, body(nothing())).await.0, 403);
}
