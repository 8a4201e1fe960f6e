//! Audit streams with failing sinks: stored failures, notifications, and the parts that continue.

use std::time::{Duration, Instant};

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{
    delivery::{Answer, Receiver},
    log::{AGENT, TENANT, decided},
};
use crate::{
    evidence::sealed,
    support::{Answered, Members, Plain, TestApp, new_stop, only},
};

const PATIENCE: Duration = Duration::from_secs(30);
const STREAMS: &str = "/api/v1/audit-streams";

async fn stream(app: &TestApp, receiver: &Receiver) -> String {
    let filter = only("event_types", ["svc.actor.*"]);
    let body = json!({"tenant_id": TENANT, "sink": "webhook", "target": receiver.base,
                      "filter": filter});
    app.owner().create_audit_stream(body).await.assert_made("audit_stream")
}

async fn stopped(app: &TestApp) -> String {
    app.owner().create_stop_signal(new_stop(AGENT, "x")).await.assert_made("stop_signal")
}

/// Waits until the stream's last failure satisfies the condition.
async fn until(app: &TestApp, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let shown = app.owner().get(&format!("{STREAMS}/{id}")).await.assert_status(200);
        let failure = &shown["audit_stream"]["last_failure"];
        if wanted(failure) {
            return failure.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{failure:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns an admin's notifications about failing streams.
async fn told(app: &TestApp) -> Vec<Value> {
    let admin = app.person(TENANT, "admin", "ann@acme.example");
    let (_, list) = admin.list_notifications("").await;
    let all = list["notifications"].as_array().unwrap().clone();
    all.into_iter().filter(|one| one["kind"] == "audit_stream.failing").collect()
}

async fn run(app: &TestApp, sql: &str) {
    app.database.owner().await.batch_execute(sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_shows_why_its_sink_fails_and_admins_are_told_once() {
    let (app, receiver) = (TestApp::seeded().await, Receiver::start().await);
    app.demo().await;
    receiver.always(Answer::status(503));
    let id = stream(&app, &receiver).await;
    until(&app, &id, Value::is_null).await;
    stopped(&app).await;
    let failure = until(&app, &id, Value::is_object).await;
    assert_eq!(failure["error"], "the webhook did not take it: it answered 503");
    assert!(failure["at"].is_string() && failure["failures"].as_i64() >= Some(1), "{failure:#}");
    assert!(told(&app).await.is_empty());
    let (_, list) = app.owner().list_audit_streams("").await;
    let listed = list["audit_streams"].as_array().unwrap().iter().find(|one| one["id"] == id);
    assert!(listed.unwrap()["last_failure"].is_object(), "{list:#}");
    run(&app, "UPDATE audit_cursors SET failures = 4, next_try_at = NULL").await;
    until(&app, &id, |failure| failure["failures"].as_i64() >= Some(5)).await;
    run(&app, "UPDATE audit_cursors SET next_try_at = NULL").await;
    until(&app, &id, |failure| failure["failures"].as_i64() >= Some(6)).await;
    let notices = told(&app).await;
    assert_eq!(notices.len(), 1, "{notices:#?}");
    assert_eq!(notices[0]["subject_ref"], json!(id));
    assert_eq!(notices[0]["data"], json!({"audit_stream_id": id, "failures": 5}));
    receiver.always(Answer::status(204));
    run(&app, "UPDATE audit_cursors SET next_try_at = NULL").await;
    until(&app, &id, Value::is_null).await;
}

/// A refused checkpoint is retried separately from the events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_checkpoint_does_not_hold_up_events() {
    let (app, receiver) = (TestApp::seeded().await, Receiver::start().await);
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    let is_checkpoint = |event: &Value| event["kind"] == "svc.log.checkpoint.v1";
    receiver.answers(move |received| {
        Answer::status(if is_checkpoint(&received.event()) { 422 } else { 204 })
    });
    let id = stream(&app, &receiver).await;
    sealed(&app.owner(), &decided(&client, 10.0, "DE").await).await;
    // After the fourth failure, the next attempt is 16 seconds away.
    let failure = until(&app, &id, |failure| failure["failures"].as_i64() >= Some(4)).await;
    assert_eq!(failure["error"], "checkpoint: the webhook did not take it: it answered 422");
    let refused = receiver.received().len();
    let stop = stopped(&app).await;
    let begun = Instant::now();
    while !receiver.received().iter().any(|one| one.event()["subject_ref"] == json!(stop)) {
        assert!(begun.elapsed() < Duration::from_secs(4), "the event waits for the checkpoint");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The checkpoint is not retried together with an event. Once its retry is due, it is sent.
    assert_eq!(receiver.received().len(), refused + 1);
    receiver.always(Answer::status(204));
    run(&app, "UPDATE audit_cursors SET checkpoint_failed_at = now() - interval '1 h'").await;
    until(&app, &id, Value::is_null).await;
    assert!(is_checkpoint(&receiver.received().last().unwrap().event()));
}

/// The error names the setting that is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_to_nats_needs_a_server() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let owner = app.owner();
    let nats = json!({"tenant_id": TENANT, "sink": "nats", "target": "audit.acme"});
    let (status, refused) = owner.create_audit_stream(nats).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "sink"), "{refused:#}");
    assert!(refused["message"].as_str().unwrap().contains("`nats.url`"), "{refused:#}");
    let body = only("sink", "stdout").with("tenant_id", TENANT);
    let id = owner.create_audit_stream(body).await.assert_made("audit_stream");
    let path = format!("{STREAMS}/{id}");
    let (status, refused) =
        owner.patch(&path, json!({"sink": "nats", "target": "audit.acme"})).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "sink"), "{refused:#}");
    // A stream that was created before NATS was removed from the settings can still be sealed.
    run(&app, "UPDATE audit_streams SET sink = 'nats', target = 'audit.acme'").await;
    assert_eq!(owner.patch(&path, only("state", "sealed")).await.0, 200);
}
