//! Connections on which no data arrives, as behind a proxy after the database has moved. No call
//! waits forever, and the service recovers without a restart.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_store::{Error, Limits, Notification, Scope, Store};
use diesel_async::SimpleAsyncConnection;
use tokio_stream::StreamExt;

use super::{
    figures::{figure, times},
    process::allowed,
};
use crate::support::{Client, Line, TestApp, Wishes, asking, database::Database, run_workers};

/// Evaluates with an idempotency key, which the service first looks up through another pool.
async fn keyed(client: &Client, key: &str) -> (u16, serde_json::Value) {
    let headers = [("idempotency-key", key)];
    client.evaluate_with(allowed(), &headers).await
}

/// Measures the time until decisions with and without a key succeed. Readiness must respond all the
/// time.
async fn back_after(client: &Client, round: usize) -> Duration {
    let cut = Instant::now();
    for tries in 0.. {
        let ready = Instant::now();
        client.get("/health/ready").await;
        // Readiness promises a response within one second. The margin is for a loaded machine.
        assert!(ready.elapsed() < Duration::from_millis(2500), "{:?}", ready.elapsed());
        let key = format!("after-{round}-{tries}");
        let plain = client.evaluate(allowed());
        let (plain, keyed) = tokio::join!(plain, keyed(client, &key));
        match (plain.0, keyed.0) {
            (200, 200) => break,
            (200 | 503, 200 | 503) => {}
            other => panic!("{other:?}: {plain:?} {keyed:?}"),
        }
        assert!(cut.elapsed() < Duration::from_secs(30), "not back in 30 s");
    }
    cut.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_decides_again_within_ten_seconds_of_a_silent_failover() {
    let database = Arc::new(Database::fresh().await);
    let line = Line::before(&database).await;
    let wishes = Wishes { address: Some(line.address()), ..Wishes::default() };
    let node = TestApp::on(database, wishes).await;
    let demo = node.demo().await;
    let client = node.client(&demo.api_key);
    // Makes so many calls at once that every pool has connections.
    let asked = (0..24).map(|n| {
        let client = client.clone();
        async move { keyed(&client, &format!("before-{n}")).await }
    });
    for (status, answer) in futures_util::future::join_all(asked).await {
        assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    }

    let mut longest = Duration::ZERO;
    for round in 0..times() {
        line.cut();
        longest = longest.max(back_after(&client, round).await);
    }
    figure(
        &format!("{} times every connection to the database silent", times()),
        &format!("again after {:.1} s at most", longest.as_secs_f64()),
    );
    assert!(longest < Duration::from_secs(10), "it took {longest:?}");
    // Notifications arrive again as well.
    let (status, answer) = node.owner().suspend_delegation(&demo.delegation_id).await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = client.evaluate(asking(1200.0, "DE")).await;
    assert_eq!((status, &answer["decision"]), (200, &"deny".into()), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_ends_and_its_connection_is_not_used_again() {
    let database = Arc::new(Database::fresh().await);
    let line = Line::before(&database).await;
    let limits = Limits { system: 1, statement: Duration::from_millis(500), ..Limits::default() };
    let store = Store::open(&line.address(), &limits).unwrap();
    let scope = Scope::service();
    let one = async |store: &Store| {
        let read = store
            .read_tx(&scope, async move |db| Ok::<_, Error>(db.batch_execute("SELECT 1").await?));
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("it ends by itself")
    };
    one(&store).await.unwrap();
    line.hold();
    assert!(matches!(one(&store).await, Err(Error::Unavailable(_))));
    line.release();
    // The pool has only this connection. If the pool reused it while it is busy, this call would
    // wait or get another call's result.
    let begun = Instant::now();
    while one(&store).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the pool did not recover");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_listener_is_probed_and_reconnects() {
    let database = Arc::new(Database::fresh().await);
    let line = Line::before(&database).await;
    let store = Store::open(&line.address(), &Limits::default()).unwrap();
    let mut heard = store.notifications("authority_changes");
    run_workers([store.listener()]);
    assert_eq!(heard.next().await, Some(Notification::Listening));
    line.cut();
    let again = tokio::time::timeout(Duration::from_secs(20), heard.next()).await;
    assert_eq!(
        again,
        Ok(Some(Notification::Listening)),
        "the listener stays on a silent connection"
    );
}
