//! Audit streams deliver to real sinks in order, despite failures on the way.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use async_nats::jetstream::{self, consumer::pull, stream::Config};
use authority_process::clock::Clock;
use authority_verify_webhook::{Options, verify_webhook};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    delivery::{Answer, Receiver},
    log::{AGENT, TENANT, decided, events},
};
use crate::{
    evidence::{
        log::{checkpoint, restore},
        sealed,
    },
    support::{
        Answered, CHECKPOINT, Client, Members, Plain, SEAL_DECISION, TestApp, Wishes, new_stop,
        only,
    },
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A NATS server with `JetStream`.
struct Server {
    child: Option<Child>,
    folder: TempDir,
    port: u16,
}

impl Server {
    /// A server with a free port that is not started yet.
    fn new() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { child: None, folder: TempDir::new().unwrap(), port }
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts the server with a stream for all subjects below `audit`.
    async fn start(&mut self) -> jetstream::Context {
        let port = self.port.to_string();
        let mut server = Command::new("nats-server");
        server.args(["-js", "-a", "127.0.0.1", "-p", &port, "-sd"]).arg(self.folder.path());
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.child = Some(server.expect("`nats-server` is missing; run script/features"));
        let begun = Instant::now();
        loop {
            if let Ok(client) = async_nats::connect(self.url()).await {
                let context = jetstream::new(client);
                let subjects = vec!["audit.>".to_owned()];
                let config = Config { name: "audit".to_owned(), subjects, ..Config::default() };
                if context.get_or_create_stream(config).await.is_ok() {
                    return context;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "NATS does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the ids and bodies of the messages stored under a subject.
async fn stored(context: &jetstream::Context, subject: &str) -> Vec<(String, Vec<u8>)> {
    let stream = context.get_stream("audit").await.unwrap();
    let config = pull::Config { filter_subject: subject.to_owned(), ..Default::default() };
    let consumer = stream.create_consumer(config).await.unwrap();
    let fetched =
        consumer.fetch().max_messages(1000).expires(Duration::from_millis(300)).messages();
    let mut fetched = fetched.await.unwrap();
    let mut found = Vec::new();
    while let Some(Ok(message)) = fetched.next().await {
        let id = message.headers.as_ref().unwrap().get("Nats-Msg-Id").unwrap().to_string();
        found.push((id, message.payload.to_vec()));
    }
    found
}

/// Waits until the subject has as many messages as `expected`.
async fn reached(
    context: &jetstream::Context,
    subject: &str,
    expected: usize,
) -> Vec<(String, Vec<u8>)> {
    let begun = Instant::now();
    loop {
        let found = stored(context, subject).await;
        if found.len() >= expected {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{} of {expected} messages", found.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn stream(app: &TestApp, body: Value) -> String {
    let body = body.with("tenant_id", TENANT);
    app.owner().create_audit_stream(body).await.assert_made("audit_stream")
}

async fn stopped(app: &TestApp) -> String {
    app.owner().create_stop_signal(new_stop(AGENT, "x")).await.assert_made("stop_signal")
}

/// The sink receives the whole log with each decision, byte for byte and in order, and the
/// checkpoints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_has_every_event_in_order_and_the_checkpoints() {
    let mut server = Server::new();
    let context = server.start().await;
    let app = TestApp::wished(Wishes { nats: Some(server.url()), ..Wishes::default() }).await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    let id = stream(&app, json!({"sink": "nats", "target": "audit.acme"})).await;
    let sealed = decided(&client, 10.0, "DE").await;
    decided(&client, 10.0, "US").await;
    assert_eq!(app.owner().seal_decision(&sealed).await.0, 200);
    let begun = Instant::now();
    let log = loop {
        let log = events(&app).await;
        if log.iter().any(|event| event["event_type"] == "svc.decision.denied")
            && log.iter().any(|event| event["event_type"] == "svc.evidence_pack.generated")
        {
            break log;
        }
        assert!(begun.elapsed() < PATIENCE, "{log:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let found = reached(&context, "audit.acme", log.len()).await;
    assert_eq!(found.len(), log.len());
    for (event, (id, body)) in log.iter().zip(&found) {
        assert_eq!(serde_json::to_vec(event).unwrap().len(), body.len());
        assert_eq!(serde_json::from_slice::<Value>(body).unwrap(), *event);
        assert_eq!(json!(format!("{}@audit.acme", event["event_id"].as_str().unwrap())), json!(id));
    }
    let checkpoints = reached(&context, "audit.acme.checkpoint.acme", 1).await;
    let checkpoint: Value = serde_json::from_slice(&checkpoints[0].1).unwrap();
    assert_eq!(
        (checkpoint["kind"].text(), checkpoint["tenant_id"].text()),
        ("svc.log.checkpoint.v1", TENANT)
    );
    let (_, newest) = app.owner().text("GET", CHECKPOINT, None).await;
    assert_eq!(checkpoint["checkpoint"], json!(newest));
    let (_, shown) = app.owner().get_audit_stream(&id).await;
    assert_eq!(shown["audit_stream"]["cursor"], json!(log.len().to_string()), "{shown:#}");
}

/// No event is lost or skipped while the sink is unavailable. A sealed stream sends no more events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_comes_back_gets_all_and_a_sealed_stream_none() {
    let mut server = Server::new();
    let app = TestApp::wished(Wishes { nats: Some(server.url()), ..Wishes::default() }).await;
    app.demo().await;
    let filter = json!({"event_types": ["svc.actor.*", "svc.recovery.*"],
                        "filter": "data.actor_id == \"svc:agent:acme:invoice-bot\""});
    let body = json!({"sink": "nats", "target": "audit.stops", "filter": filter});
    let id = stream(&app, body).await;
    let stops = [stopped(&app).await, stopped(&app).await];
    tokio::time::sleep(Duration::from_secs(1)).await;
    let context = server.start().await;
    let found = reached(&context, "audit.stops", 2).await;
    let subjects: Vec<Value> = found
        .iter()
        .map(|(_, body)| serde_json::from_slice::<Value>(body).unwrap()["subject_ref"].clone())
        .collect();
    assert_eq!(subjects, stops);
    assert_eq!(app.owner().update_audit_stream(&id, only("state", "sealed")).await.0, 200);
    stopped(&app).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stored(&context, "audit.stops").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stream_cannot_do_is_refused_by_name() {
    let app = TestApp::seeded().await;
    app.demo().await;
    for (body, field) in [
        (only("sink", "nats"), "target"),
        (json!({"sink": "nats", "target": "audit.*"}), "target"),
        (only("sink", "webhook"), "target"),
        (json!({"sink": "webhook", "target": "http://192.0.2.1/x"}), "target"),
        (json!({"sink": "webhook", "target": "https://user@example.org/"}), "target"),
        (json!({"filter": {"types": []}}), "filter.types"),
        (json!({"filter": {"event_types": ["svc.none"]}}), "filter.event_types"),
        (json!({"filter": {"filter": "data.none == 1"}}), "filter.filter"),
    ] {
        let body = body.with("tenant_id", TENANT);
        let (status, refused) = app.owner().create_audit_stream(body).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
    }
}

/// A webhook receives the same events, signed and in order. A failed event is retried and delays
/// the events after it. A sealed stream sends no more events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_gets_every_event_in_order_and_signed() {
    let (app, receiver) = (TestApp::seeded().await, Receiver::start().await);
    app.demo().await;
    let mut refused = 0;
    receiver.answers(move |_| {
        refused += 1;
        Answer::status(if refused <= 2 { 503 } else { 204 })
    });
    let url = format!("{}/audit", receiver.base);
    let filter = only("event_types", ["svc.actor.*"]);
    let body = json!({"sink": "webhook", "target": url, "filter": filter});
    let id = stream(&app, body).await;
    let stops = [stopped(&app).await, stopped(&app).await, stopped(&app).await];
    let received = receiver.wait_for(5).await;
    let jwks: Value = serde_json::from_str(&app.app.keys.jwks()).unwrap();
    let options = Options { jwks: Some(&jwks), ..Options::new(&url, TENANT) };
    let now = u64::try_from(Clock::default().now().timestamp()).unwrap();
    let subjects: Vec<Value> = received
        .iter()
        .map(|one| verify_webhook(&one.body, &one.pairs(), &options, now).unwrap())
        .map(|event| event["subject_ref"].clone())
        .collect();
    let [first, second, third] = stops.map(Value::from);
    assert_eq!(subjects, [first.clone(), first.clone(), first, second, third]);
    assert_eq!(app.owner().update_audit_stream(&id, only("state", "sealed")).await.0, 200);
    stopped(&app).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(receiver.received().len(), 5);
}

/// NATS detects duplicate ids within a whole NATS stream, which these two audit streams share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_audit_streams_in_one_nats_stream_both_get_all() {
    let mut server = Server::new();
    let context = server.start().await;
    let app = TestApp::wished(Wishes { nats: Some(server.url()), ..Wishes::default() }).await;
    app.demo().await;
    for subject in ["audit.one", "audit.two"] {
        let filter = only("event_types", ["svc.actor.*"]);
        stream(&app, json!({"sink": "nats", "target": subject, "filter": filter})).await;
    }
    stopped(&app).await;
    stopped(&app).await;
    for subject in ["audit.one", "audit.two"] {
        assert_eq!(reached(&context, subject, 2).await.len(), 2, "{subject}");
    }
}

/// The new filter applies as soon as the change is answered. Events that the old filter excluded
/// are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_changed_while_it_sends_skips_nothing() {
    let (app, receiver) = (TestApp::seeded().await, Receiver::start().await);
    app.demo().await;
    let filter = json!({"event_types": ["svc.actor.*"], "filter": "sequence <= 20"});
    for _ in 0..20 {
        stopped(&app).await;
    }
    receiver.always(Answer::status(204).after(Duration::from_millis(300)));
    let body = json!({"sink": "webhook", "target": receiver.base, "filter": filter});
    let id = stream(&app, body).await;
    receiver.wait_for(1).await;
    let all = json!({"filter": {"event_types": ["svc.actor.*"]}});
    assert_eq!(app.owner().update_audit_stream(&id, all).await.0, 200);
    receiver.always(Answer::status(204));
    let last = stopped(&app).await;
    let begun = Instant::now();
    loop {
        let received = receiver.received();
        if received.iter().any(|one| one.event()["subject_ref"] == json!(last)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the last event of {} is missing", received.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A receiver that verifies every request can also verify checkpoints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_gets_checkpoints_that_receivers_can_check() {
    let (app, receiver) = (TestApp::seeded().await, Receiver::start().await);
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    let url = format!("{}/audit", receiver.base);
    let filter = only("event_types", ["svc.actor.*"]);
    stream(&app, json!({"sink": "webhook", "target": url, "filter": filter})).await;
    sealed(&app.owner(), &decided(&client, 10.0, "DE").await).await;
    let received = receiver.wait_for(1).await;
    let jwks: Value = serde_json::from_str(&app.app.keys.jwks()).unwrap();
    let options = Options { jwks: Some(&jwks), ..Options::new(&url, TENANT) };
    let now = u64::try_from(Clock::default().now().timestamp()).unwrap();
    let message = verify_webhook(&received[0].body, &received[0].pairs(), &options, now).unwrap();
    assert_eq!(message["kind"], "svc.log.checkpoint.v1");
}

/// A sink that hangs does not delay another stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_webhook_does_not_hold_up_another_stream() {
    let (app, slow, quick) =
        (TestApp::seeded().await, Receiver::start().await, Receiver::start().await);
    app.demo().await;
    slow.always(Answer::status(204).after(Duration::from_secs(10)));
    let filter = only("event_types", ["svc.actor.*"]);
    for receiver in [&slow, &quick] {
        stream(&app, json!({"sink": "webhook", "target": receiver.base, "filter": filter})).await;
    }
    stopped(&app).await;
    slow.wait_for(1).await;
    let begun = Instant::now();
    stopped(&app).await;
    quick.wait_for(2).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// A node without its own checkpoints, on a database that was restored to an earlier day, reads the
/// last signed checkpoint from NATS and begins a new epoch. Messages from other writers there have
/// no effect. While NATS is unavailable, the node does not sign.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_in_nats_is_a_third_witness() {
    let mut server = Server::new();
    let context = server.start().await;
    let app = TestApp::wished(Wishes { nats: Some(server.url()), ..Wishes::default() }).await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    stream(&app, json!({"sink": "nats", "target": "audit.acme"})).await;
    let ids = [decided(&client, 1.0, "DE").await, decided(&client, 2.0, "DE").await];
    sealed(&app.owner(), &ids[0]).await;
    let first = checkpoint(&app.owner()).await;
    let origin = first.checkpoint.origin.clone();
    reached(&context, "audit.acme.checkpoint.acme", 1).await;
    sealed(&app.owner(), &ids[1]).await;
    reached(&context, "audit.acme.checkpoint.acme", 2).await;
    restore(&app, &first).await;
    let fresh = async || {
        let wishes = Wishes { nats: Some(server.url()), own_files: true, ..Wishes::default() };
        app.beside(wishes).await
    };
    let own = app.database.folder().join("apart");
    let elsewhere = async |node: &TestApp, id: &str| {
        let pack = sealed(&node.client(app.owner_token()), id).await;
        let pack: Value = serde_json::from_str(&pack).unwrap();
        pack["log"]["origin"].as_str().unwrap().split_once('/').unwrap().1.to_owned()
    };
    let node = fresh().await;
    assert_eq!(elsewhere(&node, &ids[1]).await, "log/acme/2");
    drop(node);
    // A note that the service did not sign is skipped.
    let forged = json!({"kind": "svc.log.checkpoint.v1", "checkpoint":
        format!("{origin}/2\n999\n{}\n\n\u{2014} {origin}/2 {}\n", "A".repeat(43) + "=",
                "AAAA".repeat(22) + "AAA=")});
    let publish = context.publish("audit.acme.checkpoint.acme", forged.to_string().into());
    publish.await.unwrap().await.unwrap();
    std::fs::remove_dir_all(&own).unwrap();
    let node = fresh().await;
    let third = decided(&client, 3.0, "DE").await;
    assert_eq!(elsewhere(&node, &third).await, "log/acme/2");
    drop(node);
    let fourth = decided(&client, 4.0, "DE").await;
    std::fs::remove_dir_all(&own).unwrap();
    let url = server.url();
    server.stop();
    let node = app.beside(Wishes { nats: Some(url), own_files: true, ..Wishes::default() }).await;
    let asked = only("decision_id", &fourth);
    let there: Client = node.client(app.owner_token());
    assert_eq!(there.post(SEAL_DECISION, asked).await.0, 503);
    server.start().await;
    assert_eq!(elsewhere(&node, &fourth).await, "log/acme/2");
}
