//! The unread responses of all connections share one budget of bytes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agent_authority::transport::{Budget, Settings};
use axum::{Router, body::Bytes, routing::get};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::sleep};

use super::{
    http2::Peer,
    server::{Served, rest, serve, serve_routes, settings},
};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Limits a connection to one MiB (two with responses in progress), and the node to four.
fn bounded() -> Settings {
    let mut settings = settings();
    settings.bounds.unsent_bytes = MIB;
    settings.budget = Budget::new(4 * MIB);
    settings
}

/// Opens connections with a thousand streams each, which request `path` and do not read. Returns
/// the largest number of bytes that were buffered, and the connections, of which some are closed.
async fn hoard(served: &Served, budget: &Budget, path: &str, window: u32) -> (u64, Vec<Peer>) {
    let (mut peers, mut most) = (Vec::new(), 0);
    for _ in 0..8 {
        let mut peer = Peer::new(served.connect().await, true, window).await;
        peer.get_all((1..).step_by(2).take(1000), path).await;
        peers.push(peer);
        for _ in 0..20 {
            most = most.max(budget.held());
            sleep(Duration::from_millis(5)).await;
        }
        // Clients that read still get their responses.
        let answer = served.ask("GET /health HTTP/1.1").await;
        assert!(answer.ends_with("live"), "{answer}");
        let answer = served.ask("GET /large HTTP/1.1").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > 64 * 1024);
    }
    // On a busy machine, the service may still be answering.
    let begun = Instant::now();
    while most <= 2 * MIB && begun.elapsed() < PATIENCE {
        most = most.max(budget.held());
        sleep(Duration::from_millis(5)).await;
    }
    (most, peers)
}

async fn closed(peers: Vec<Peer>) -> usize {
    let mut closed = 0;
    for mut peer in peers {
        let end = async { while peer.next().await.is_some() {} };
        closed += usize::from(tokio::time::timeout(Duration::from_millis(300), end).await.is_ok());
    }
    closed
}

/// Each of eight connections has a thousand streams, with a flow-control window of 0 bytes or 1
/// byte.
#[tokio::test(flavor = "multi_thread")]
async fn peers_that_read_nothing_hold_no_more_than_the_budget() {
    for (path, window) in [("/large", 0), ("/", 0), ("/large", 1)] {
        let settings = bounded();
        assert_eq!(settings.bounds.streams, 1000);
        let budget = Arc::clone(&settings.budget);
        let served = serve(settings).await;
        let (most, peers) = hoard(&served, &budget, path, window).await;
        assert!(most > 2 * MIB, "{path}, {window}: only {most} bytes were held");
        // If several threads add bytes at the same moment, the excess is dropped a moment later.
        assert!(most < 5 * MIB, "{path}, {window}: {most} bytes were held");
        let closed = closed(peers).await;
        assert!((1..8).contains(&closed), "{path}, {window}: {closed} of 8 were cut");
        let begun = Instant::now();
        while budget.held() > 0 {
            assert!(begun.elapsed() < PATIENCE, "{} bytes stay counted", budget.held());
            sleep(Duration::from_millis(20)).await;
        }
        served.stop().await;
    }
}

/// A connection that gets many small responses at once and reads them stays open.
#[tokio::test(flavor = "multi_thread")]
async fn the_connection_that_holds_the_most_for_the_longest_is_cut() {
    let settings = bounded();
    let served = serve(settings).await;
    let mut old = Peer::new(served.connect().await, true, 0).await;
    old.get_all((1..).step_by(2).take(1000), "/large").await;
    sleep(Duration::from_millis(500)).await;
    let mut modest = Peer::new(served.connect().await, true, 0).await;
    modest.get(1, "/large").await;
    let mut others = Vec::new();
    for _ in 0..4 {
        let mut peer = Peer::new(served.connect().await, true, 0).await;
        peer.get_all((1..).step_by(2).take(1000), "/large").await;
        others.push(peer);
    }
    let end = async { while old.next().await.is_some() {} };
    assert!(tokio::time::timeout(PATIENCE, end).await.is_ok(), "the oldest hoarder stays");
    let end = async { while modest.next().await.is_some() {} };
    let ended = tokio::time::timeout(Duration::from_millis(300), end).await;
    assert!(ended.is_err(), "a connection that holds little was cut");
    drop((old, modest, others));
    served.stop().await;
}

/// An HTTP/1.1 connection buffers one response at a time.
#[tokio::test(flavor = "multi_thread")]
async fn the_budget_is_for_both_protocols() {
    let mut settings = settings();
    settings.budget = Budget::new(100 * MIB);
    let budget = Arc::clone(&settings.budget);
    let huge = Bytes::from(vec![b'x'; 32 << 20]);
    let routes = Router::new()
        .route("/huge", get(async move || huge.clone()))
        .route("/health", get(async || "live"));
    let served = serve_routes(routes, settings).await;
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..6 {
        let mut stream = served.connect().await;
        stream.write_all(b"GET /huge HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        sleep(Duration::from_millis(100)).await;
        assert!(budget.held() <= 100 * MIB, "{} bytes are held", budget.held());
        assert!(served.ask("GET /health HTTP/1.1").await.ends_with("live"));
        streams.push(stream);
    }
    // The first connection was closed: the bytes that arrived are less than its response.
    let got = rest(&mut streams[0]).await.len();
    assert!(got < 32 << 20, "{got} bytes came");
    drop(streams);
    served.stop().await;
}
