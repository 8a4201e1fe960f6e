//! A node is ready when it can record decisions. Any fault that prevents this is reported over REST
//! and gRPC as long as it lasts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_config as config;
use authority_keys::Keys;
use authority_process::clock::Clock;
use axum::{Router, routing::get};
use diesel_async::SimpleAsyncConnection;
use serde_json::Value;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::process::allowed;
use crate::support::{Client, TestApp, Wishes, database::Database, redacted};

/// This page must list every worker.
const RUNNING: &str = include_str!("../../../docs/operations/running.md");
const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

/// Waits until `/health/ready` has this status.
pub(super) async fn until(client: &Client, wanted: u16) -> Value {
    let begun = Instant::now();
    loop {
        let (status, answer) = client.get("/health/ready").await;
        if status == wanted {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "still {status}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the message of a check, unless its status is ok.
#[track_caller]
pub(super) fn fault(answer: &Value, name: &str) -> Option<String> {
    let mut checks = answer["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["name"] == name).unwrap();
    Some(check["status"].as_str().unwrap().to_owned()).filter(|said| said != "ok")
}

async fn until_grpc_says(node: &TestApp, wanted: i32) {
    let channel = tonic::transport::Channel::from_shared(node.base_url().to_owned()).unwrap();
    let mut health = HealthClient::new(channel.connect().await.unwrap());
    let begun = Instant::now();
    for service in ["", "authority.runtime.v1.RuntimeService"] {
        loop {
            let asked = HealthCheckRequest { service: service.to_owned() };
            let status = health.check(asked).await.unwrap().into_inner().status;
            if status == wanted {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "`{service}` is still {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Closes every connection of the service. New connections follow the new setting.
async fn disconnect(database: &Database) {
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    database.run(others).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_database_is_not_ready() {
    let node = TestApp::start().await;
    let client = node.client("");
    let (status, ready) = client.get("/health/ready").await;
    assert_eq!((status, &ready["status"]), (200, &"ready".into()), "not ready from the start");
    insta::assert_snapshot!("ready", redacted(ready.clone()));
    for worker in ready["workers"].as_array().unwrap() {
        let name = format!("`{}`", worker["name"].as_str().unwrap());
        assert!(RUNNING.contains(&name), "docs/operations/running.md lacks the worker {name}");
    }
    let (_, name) = node.database.names();
    let set = |to: &str| format!("ALTER DATABASE {name} SET default_transaction_read_only = {to}");
    node.database.run(&set("on")).await;
    disconnect(&node.database).await;
    let answer = until(&client, 503).await;
    assert_eq!(answer["status"], "not_ready", "{answer}");
    // The response has the same fields and checks in every state.
    let names = |answer: &Value| -> Vec<String> {
        let checks = answer["checks"].as_array().unwrap().iter();
        checks.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
    };
    let members = |answer: &Value| answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((members(&answer), names(&answer)), (members(&ready), names(&ready)));
    // The database accepts connections again, and the response names the check that still fails.
    let begun = Instant::now();
    while fault(&until(&client, 503).await, "recorder").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    until_grpc_says(&node, NOT_SERVING).await;
    let mut owner = node.database.owner().await;
    for sql in ["SET default_transaction_read_only = off", &set("off")] {
        owner.batch_execute(sql).await.unwrap();
    }
    drop(owner);
    disconnect(&node.database).await;
    until(&client, 200).await;
    until_grpc_says(&node, SERVING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_partition_is_not_ready() {
    let node = TestApp::start().await;
    let client = node.client("");
    until(&client, 200).await;
    let detach = "DO $$ DECLARE part regclass; BEGIN \
        FOR part IN SELECT inhrelid::regclass FROM pg_inherits \
                    WHERE inhparent = 'decisions'::regclass LOOP \
            EXECUTE format('ALTER TABLE decisions DETACH PARTITION %s', part); \
        END LOOP; END $$";
    node.database.run(detach).await;
    let answer = until(&client, 503).await;
    assert!(fault(&answer, "recorder").is_some(), "{answer}");
}

/// The tenant of this change is unknown. Any tenant's authority may have ended. The node must not
/// decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_without_a_valid_tenant_is_not_ready() {
    let node = TestApp::start().await;
    let client = node.client("");
    until(&client, 200).await;
    let change = "INSERT INTO authority_changes \
                  (tenant_id, tenant_revision, table_name, entity_id, at) \
                  VALUES ('acme', 1, 'tools', 'svc:ent:acme:tool:0', now())";
    node.database.run(change).await;
    let answer = until(&client, 503).await;
    assert!(fault(&answer, "graph").is_some(), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_free_connection_is_not_ready() {
    let node = TestApp::start().await;
    let client = node.client("");
    let (_, name) = node.database.names();
    let limit = |most: i32| format!("ALTER DATABASE {name} CONNECTION LIMIT {most}");
    node.database.run(&limit(0)).await;
    disconnect(&node.database).await;
    until(&client, 503).await;
    let begun = Instant::now();
    while fault(&until(&client, 503).await, "recorder").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    node.database.run(&limit(-1)).await;
    until(&client, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_nobody_lets_go_is_not_ready() {
    let node = TestApp::start().await;
    let client = node.client("");
    until(&client, 200).await;
    // Any client that can connect can take this lock. While it is taken, no decision is stored.
    let mut holder = node.database.owner().await;
    holder.batch_execute("SELECT pg_advisory_lock(4157001)").await.unwrap();
    let begun = Instant::now();
    while fault(&until(&client, 503).await, "recorder").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    drop(holder);
    until(&client, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_leave_nothing_behind() {
    let node = TestApp::start().await;
    let mut db = node.database.store().recorder().await.unwrap();
    db.batch_execute("SELECT can_record()").await.unwrap();
    let size = "DO $$ BEGIN ASSERT (SELECT sum(pg_relation_size(relid)) \
                FROM pg_partition_tree('decisions')) = 0; END $$";
    node.database.run(size).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_there_before_a_node_is_ready() {
    let database = Arc::new(Database::fresh().await);
    // The database was unused for so long that all partitions that were created in advance are in
    // the past.
    let alone = "DO $$ DECLARE part regclass; BEGIN \
        FOR part IN SELECT inhrelid::regclass FROM pg_inherits \
                    WHERE inhparent = 'decisions'::regclass \
                      AND inhrelid::regclass::text <> 'decisions_before' LOOP \
            EXECUTE format('DROP TABLE %s', part); \
        END LOOP; \
        UPDATE time_partitions SET made_until = date_trunc('month', now()) \
        WHERE table_name = 'decisions'; END $$";
    database.run(alone).await;
    // Creating partitions waits for this lock, which is held for three seconds. Without the wait,
    // the node would be ready earlier.
    let mut holder = database.owner().await;
    let lock = "SELECT pg_advisory_lock(4157002)";
    holder.batch_execute(lock).await.unwrap();
    let starting = tokio::spawn(TestApp::on(Arc::clone(&database), Wishes::default()));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!starting.is_finished(), "the node is ready without a partition");
    drop(holder);
    let node = starting.await.unwrap();
    let demo = node.demo().await;
    let (status, answer) = node.client(&demo.api_key).evaluate(allowed()).await;
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
}

/// Returns the status of a background worker in a readiness response.
#[track_caller]
fn worker(answer: &Value, name: &str) -> Value {
    let mut workers = answer["workers"].as_array().unwrap().iter();
    workers.find(|worker| worker["name"] == name).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_keeps_failing_is_named_and_is_no_reason_not_to_decide() {
    let node = TestApp::start().await;
    let client = node.client("");
    let follows = async |is_fine: bool| {
        let begun = Instant::now();
        loop {
            let answer = until(&client, 200).await;
            let heads = worker(&answer, "log_heads");
            if (heads["status"] == "ok" && heads["seconds_since_success"].is_number()) == is_fine {
                return answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{heads}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let fine = follows(true).await;
    let names = fine["workers"].as_array().unwrap().iter().map(|worker| worker["name"].as_str());
    let names: Vec<&str> = names.map(Option::unwrap).collect();
    for name in [
        "graph_tail",
        "keys_refresh",
        "partitions",
        "recorder_first_writer",
        "recorder_probe",
        "recorder_writer",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    node.database.run("ALTER TABLE log_heads RENAME TO away").await;
    let late = follows(false).await;
    let late = late["workers"].as_array().unwrap().iter().filter(|one| one["status"] != "ok");
    let names: Vec<&str> = late.map(|one| one["name"].as_str().unwrap()).collect();
    // Audit streams may also be late, because they send the checkpoints in `log_heads`.
    assert!(names.iter().all(|name| ["audit_streams", "log_heads"].contains(name)), "{names:?}");
    assert!(names.contains(&"log_heads"), "{names:?}");
    node.database.run("ALTER TABLE away RENAME TO log_heads").await;
    follows(true).await;
}

/// The node is ready: users can't sign in while the provider is unavailable, but API keys work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_away_at_the_start_is_shown_and_used_as_soon_as_it_is_there() {
    let address = super::process::free();
    let identity = config::Identity {
        issuer: Some(format!("http://{address}")),
        audience: Some("authority".to_owned()),
        dev_provider: Some(true),
        ..config::Identity::default()
    };
    let node = TestApp::wished(Wishes { identity, ..Wishes::default() }).await;
    let client = node.client("");
    let away = until(&client, 200).await;
    let shown = fault(&away, "identity").unwrap();
    assert!(shown.contains("tokens are refused"), "{shown}");
    assert!(!away.to_string().contains(&address.to_string()), "the page is public: {away}");
    assert_eq!(away["status"], "ready");

    let document = Keys::ephemeral(Clock::default()).unwrap().token_jwks().to_string();
    let jwks = Router::new().route("/.well-known/jwks.json", get(async move || document));
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    tokio::spawn(axum::serve(listener, jwks).into_future());
    // The keys are fetched again although no call uses a token of this provider.
    let begun = Instant::now();
    while fault(&until(&client, 200).await, "identity").is_some() {
        assert!(begun.elapsed() < Duration::from_secs(8), "it is not asked again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
