//! Database defaults that other programs set: decisions and stops still work.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::readiness::{fault, until};
use crate::support::{Answered, Client, TestApp, asking, new_stop};

async fn decided(client: &Client, body: Value) -> (u16, Value) {
    let (status, answer) = client.evaluate(body).await;
    (status, answer["decision"].clone())
}

/// Closes all connections of the service. New connections have the new defaults.
async fn renew(node: &TestApp) {
    node.database
        .run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_recorded_whatever_level_the_database_begins_with() {
    for level in ["repeatable read", "serializable"] {
        let node = TestApp::seeded().await;
        let demo = node.demo().await;
        let (_, name) = node.database.names();
        let set = format!("ALTER DATABASE {name} SET default_transaction_isolation = '{level}'");
        node.database.run(&set).await;
        let defers = format!("ALTER DATABASE {name} SET default_transaction_deferrable = on");
        node.database.run(&defers).await;
        renew(&node).await;
        until(&node.client(""), 200).await;
        let client = node.client(&demo.api_key);
        // A decision that meets a closed connection gets a 503, and is repeated.
        let begun = Instant::now();
        while decided(&client, asking(1100.0, "DE")).await.0 == 503 {
            assert!(begun.elapsed() < Duration::from_secs(10), "still unavailable");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for amount in [1200.0, 1300.0] {
            assert_eq!(decided(&client, asking(amount, "DE")).await, (200, json!("allow")));
        }
        // A held request writes to more tables than an allowed one.
        let held = decided(&client, asking(25_000.0, "DE")).await;
        assert_eq!(held, (200, json!("require_approval")), "{level}");
        let stop = new_stop("svc:agent:acme:invoice-bot", "test");
        node.owner().create_stop_signal(stop).await.assert_status(201);
        assert_eq!(decided(&client, asking(1200.0, "DE")).await, (200, json!("deny")), "{level}");
        until(&node.client(""), 200).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_raises_no_revision_fails_and_the_node_says_why() {
    let node = TestApp::seeded().await;
    let demo = node.demo().await;
    let client = node.client(&demo.api_key);
    assert_eq!(decided(&client, asking(1200.0, "DE")).await, (200, json!("allow")));
    node.database.run("ALTER TABLE stop_signals DISABLE TRIGGER ALL").await;
    let stop = new_stop("svc:agent:acme:invoice-bot", "test");
    node.owner().create_stop_signal(stop.clone()).await.assert_status(500);
    let (_, found) = node.owner().list_stop_signals("tenant_id=svc:tenant:acme").await;
    assert_eq!(found["stop_signals"], json!([]), "an ineffective stop signal was stored");
    let answer = until(&node.client(""), 503).await;
    assert!(fault(&answer, "database").is_some(), "{answer:#}");
    assert!(answer.to_string().contains("ALTER TABLE stop_signals ENABLE TRIGGER"), "{answer:#}");
    node.database.run("ALTER TABLE stop_signals ENABLE TRIGGER ALL").await;
    node.owner().create_stop_signal(stop).await.assert_status(201);
    assert_eq!(decided(&client, asking(1200.0, "DE")).await, (200, json!("deny")));
    until(&node.client(""), 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_new_connections_are_replicas_is_not_ready() {
    let node = TestApp::start().await;
    let client = node.client("");
    until(&client, 200).await;
    let (_, name) = node.database.names();
    let set = format!("ALTER DATABASE {name} SET session_replication_role = replica");
    node.database.run(&set).await;
    renew(&node).await;
    // Several checks fail, because all of them connect. Waits for the check that names the setting.
    let mut told = until(&client, 503).await;
    for _ in 0..100 {
        if told.to_string().contains("session_replication_role") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        told = until(&client, 503).await;
    }
    let named = format!("ALTER DATABASE {name} RESET session_replication_role");
    assert!(told.to_string().contains(&named), "{told:#}");
    node.database.run(&named).await;
    until(&client, 200).await;
}

/// The recorder's probe does not cover tables that only some decisions write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_batches_fail_is_not_ready_although_its_probe_passes() {
    let node = TestApp::seeded().await;
    let demo = node.demo().await;
    let client = node.client(&demo.api_key);
    assert_eq!(decided(&client, asking(1200.0, "DE")).await.0, 200);
    let breaks = "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN RAISE 'no decision fits'; END $$; \
        CREATE TRIGGER broken AFTER INSERT ON decisions FOR EACH ROW EXECUTE FUNCTION broken()";
    node.database.run(breaks).await;
    assert_eq!(decided(&client, asking(1200.0, "DE")).await.0, 503);
    // Waits until two probes have succeeded.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let answer = until(&node.client(""), 503).await;
    assert!(fault(&answer, "recorder").is_some(), "{answer:#}");
    node.database.run("DROP TRIGGER broken ON decisions").await;
    assert_eq!(decided(&client, asking(1200.0, "DE")).await, (200, json!("allow")));
    until(&node.client(""), 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_behind_its_table_is_named_while_a_node_serves() {
    let node = TestApp::seeded().await;
    node.demo().await;
    let client = node.client("");
    until(&client, 200).await;
    node.database.run("SELECT setval('authority_changes_seq_seq', 1)").await;
    let answer = until(&client, 503).await;
    assert!(answer.to_string().contains("setval('authority_changes_seq_seq'"), "{answer:#}");
    let mend =
        "SELECT setval('authority_changes_seq_seq', (SELECT max(seq) FROM authority_changes))";
    node.database.run(mend).await;
    until(&client, 200).await;
}
