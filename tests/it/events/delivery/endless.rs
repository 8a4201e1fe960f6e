//! Receivers that respond with 200 and never end the body do not delay other receivers or
//! themselves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{Endpoint, Receiver, World};
use crate::support::Answered;

/// Starts a receiver that writes this response to each request and leaves the connection open.
async fn endless(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 1 << 16];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    base
}

const OPEN: &str = "HTTP/1.1 200 OK\r\n\r\nok";
const CUT: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\nok";
/// Far less than the time limit of an attempt.
const SOON: Duration = Duration::from_secs(6);

/// All receivers have the same host, like receivers behind a shared gateway: 32 places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_at_the_same_host_have_their_deliveries_at_once() {
    let world = World::start().await;
    let (open, cut, healthy) = (endless(OPEN).await, endless(CUT).await, Receiver::start().await);
    let mut slow = Vec::new();
    for (slug, base) in [("first", &open), ("second", &cut)] {
        let tenant = World::tenant(&world.app, slug).await;
        for _ in 0..4 {
            slow.push(world.endpoint_of(&tenant, Endpoint::at(base)).await);
        }
        world.events_of(&tenant, 20, "svc.authority.suspended").await;
    }
    // Waits until the slow deliveries are running.
    let begun = "SELECT 1 AS one FROM webhook_attempts HAVING count(*) >= 8".to_owned();
    world.wait_for(begun).await;
    world.endpoint(Endpoint::at(&healthy.base)).await;
    let asked = Instant::now();
    world.events(1).await;
    healthy.wait_for(1).await;
    assert!(asked.elapsed() < SOON, "a neighbour waited {:?}", asked.elapsed());
    for one in &slow {
        let ended = world.wait_until_ended(one, 20).await;
        assert!(ended.iter().all(|delivery| delivery["state"] == "delivered"));
    }
    assert!(asked.elapsed() < SOON, "the slow deliveries took {:?}", asked.elapsed());
    // The recorded latency of an attempt ends with the response head.
    let slowest = world.rows("SELECT max(latency_ms) AS most FROM webhook_attempts").await;
    assert!(slowest[0]["most"].as_i64().unwrap() < 2000, "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_and_an_audit_stream_take_no_longer_than_the_head() {
    let world = World::start().await;
    let base = endless(OPEN).await;
    let made = world.endpoint(Endpoint::at(&base)).await;
    let admin = world.app.person(&world.tenant_id, "admin", "alice@example.org");
    let begun = Instant::now();
    let (status, tested) = admin.test_webhook_endpoint(&made.id).await;
    let took = begun.elapsed();
    assert_eq!((status, tested["delivered"].as_bool()), (200, Some(true)), "{tested:#}");
    let latency = tested["latency_ms"].as_u64().unwrap();
    assert!(u128::from(latency) <= took.as_millis() && took < Duration::from_secs(3), "{took:?}");

    let body = json!({"tenant_id": world.tenant_id, "sink": "webhook", "target": base});
    world.app.owner().create_audit_stream(body).await.assert_status(201);
    world.events(20).await;
    let taken = format!(
        "SELECT sequence FROM audit_cursors c JOIN event_heads h USING (tenant_id, sequence) \
         WHERE c.tenant_id = '{}'",
        world.tenant_id
    );
    let begun = Instant::now();
    let reached: Value = world.wait_for(taken).await;
    assert!(reached["sequence"].as_i64().unwrap() >= 20, "{reached}");
    assert!(begun.elapsed() < SOON, "20 messages took {:?}", begun.elapsed());
}
