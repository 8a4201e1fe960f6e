//! Peers that are silent, send slowly, incompletely or too much, or do not read.

use std::time::{Duration, Instant};

use agent_authority::transport::{Settings, Surfaces};
use authority_config::Config;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    http2::{GOAWAY, HEADERS, Peer, RST_STREAM},
    server::{about, open_for, rest, serve, serve_routes, settings},
};
use crate::support::{TestApp, asking};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_or_half_spoken_peer_is_closed() {
    let mut settings = settings();
    settings.bounds.first_byte = SHORT;
    let served = serve(settings).await;
    for said in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM"] {
        let mut stream = served.connect().await;
        stream.write_all(said.as_bytes()).await.unwrap();
        assert!(about(open_for(&mut stream).await, SHORT), "after {said:?}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_is_closed_but_an_idle_connection_is_kept_longer() {
    let mut settings = settings();
    settings.bounds.header = SHORT;
    settings.bounds.idle = SHORT * 4;
    let served = serve(settings).await;

    let mut stream = served.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
    sleep(SHORT * 2).await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let length = stream.read(&mut answer).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"), "still open between two bounds");
    assert!(about(open_for(&mut stream).await, SHORT * 4), "idle");

    let mut stream = served.connect().await;
    let start = Instant::now();
    while stream.write_all(b"GET /").await.is_ok() && start.elapsed() < SHORT * 10 {
        sleep(SHORT / 6).await;
    }
    assert!(about(start.elapsed(), SHORT), "dripping: {:?}", start.elapsed());
    served.stop().await;
}

/// Makes one request and checks that the connection stays open.
async fn succeeds(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 8192];
    let length = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// The tenant's share is one connection: its second connection is closed once it is idle.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_beyond_its_tenants_share_is_kept_only_while_it_is_used() {
    let mut settings = settings();
    settings.bounds.idle = Duration::from_secs(10);
    settings.bounds.tenant_connections = 1;
    let served = serve(settings).await;
    let ask = async |stream: &mut TcpStream, path: &str| {
        succeeds(stream, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    };
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    let mut other = served.connect().await;
    ask(&mut first, "/holder/own").await;
    ask(&mut second, "/holder/own").await;
    ask(&mut other, "/holder/other").await;
    sleep(SHORT).await;
    ask(&mut second, "/holder/own").await;
    let idle = open_for(&mut second).await;
    assert!(idle < Duration::from_secs(5), "it was kept for {idle:?}");
    ask(&mut first, "/holder/own").await;
    ask(&mut other, "/holder/other").await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_belongs_to_the_tenant_whose_credential_it_carried() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let mut settings = Settings::default();
    settings.bounds.idle = Duration::from_secs(10);
    settings.bounds.tenant_connections = 1;
    let served = serve_routes(app.app.entry.router.clone(), settings).await;
    let body = asking(1.0, "DE").to_string();
    let request = format!(
        "POST /api/v1/runtime/evaluate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    succeeds(&mut first, &request).await;
    succeeds(&mut second, &request).await;
    let idle = open_for(&mut second).await;
    assert!(idle < Duration::from_secs(5), "it was kept for {idle:?}");
    succeeds(&mut first, &request).await;
    served.stop().await;
}

/// A proxy's connections carry requests of many tenants: no tenant's share applies to them.
#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxys_connections_belong_to_no_tenant() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let mut settings = Settings::default();
    settings.bounds.idle = Duration::from_secs(10);
    settings.bounds.tenant_connections = 1;
    settings.trusted_proxies = ["127.0.0.0/8".parse().unwrap()].as_slice().into();
    let served = serve_routes(app.app.entry.router.clone(), settings).await;
    let request =
        format!("GET /v1/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    for stream in [&mut first, &mut second] {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 8192];
        assert!(stream.read(&mut answer).await.unwrap() > 0);
    }
    let idle = timeout(Duration::from_secs(4), open_for(&mut second)).await;
    assert!(idle.is_err(), "it was closed after {idle:?}");
    served.stop().await;
}

#[test]
fn a_tenants_share_is_a_quarter_of_an_address() {
    let mut config = Config::default();
    for (connections, share) in [(1000, 250), (10, 3), (1, 1)] {
        config.limits.connections = connections;
        let bounds = Settings::new(&config, Surfaces::ALL).bounds;
        assert_eq!((bounds.connections, bounds.tenant_connections), (connections, share));
    }
}

/// The service does not read the bodies, because the only route accepts GET.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_a_large_or_late_body_closes_the_connection() {
    let mut settings = settings();
    settings.bounds.body_bytes = 10_000;
    let served = serve(settings).await;
    for late in [
        "content-length: 5000",
        "transfer-encoding: chunked",
        "expect: 100-continue\r\ncontent-length: 5",
    ] {
        let answer = served.send(&format!("POST / HTTP/1.1\r\nhost: x\r\n{late}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 405"), "{late}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{late}: {answer}");
    }
    let mut stream = served.connect().await;
    let small = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
    for _ in 0..2 {
        stream.write_all(small.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]);
        assert!(answer.starts_with("HTTP/1.1 405") && !answer.contains("connection:"), "{answer}");
    }
    // If the body is read to its end, the connection stays open.
    let echoed = "x".repeat(5000);
    let echo = format!("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n{echoed}");
    for _ in 0..2 {
        stream.write_all(echo.as_bytes()).await.unwrap();
        let mut answer = String::new();
        while !answer.ends_with(&echoed) {
            let mut part = vec![0; 4096];
            let length = stream.read(&mut part).await.unwrap();
            assert!(length > 0, "{answer}");
            answer.push_str(std::str::from_utf8(&part[..length]).unwrap());
        }
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("connection:"), "{answer}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_comes_ends_the_request() {
    let mut settings = settings();
    settings.bounds.body = SHORT;
    let served = serve(settings).await;
    let start = Instant::now();
    let answer =
        served.send("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf").await;
    assert!(about(start.elapsed(), SHORT));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains(r#""error":"invalid_request""#), "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_past_the_limit_is_refused_whether_it_says_so_or_not() {
    let served = serve(settings()).await;
    let said = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n";
    let unsaid = format!(
        "POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n",
        "x".repeat(1001)
    );
    for request in [said, &unsaid] {
        let answer = served.send(request).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(answer.contains(r#""error":"too_large""#), "{answer}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_past_the_limit_is_refused() {
    let served = serve(settings()).await;
    let answer = served.ask(&format!("GET / HTTP/1.1\r\nlong: {}", "x".repeat(20_000))).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_reads_nothing_is_cut_off() {
    let mut settings = settings();
    settings.bounds.stalled = SHORT;
    let served = serve(settings).await;

    let mut stream = served.connect().await;
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    sleep(SHORT * 4).await;
    // Bytes that were already sent can still be read. After them the connection ends.
    rest(&mut stream).await;

    served.stop().await;
}

/// Only the stream is reset, however busy the connection is, and even if part of the response was
/// read.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_an_unread_response_is_reset_alone() {
    let mut settings = settings();
    settings.bounds.stalled = SHORT;
    let served = serve(settings).await;
    for window in [0, 1, 1000] {
        let mut peer = Peer::new(served.connect().await, true, window).await;
        let start = Instant::now();
        peer.get(1, "/endless").await;
        let (mut reset, mut answered) = (None, 0);
        for stream in (3..13).step_by(2) {
            // This response has no body: it needs no flow-control window.
            peer.get(stream, "/slow").await;
            loop {
                let frame = peer.next().await.expect("the connection stays");
                match (frame.kind, frame.stream) {
                    (RST_STREAM, 1) => reset = Some(start.elapsed()),
                    (HEADERS, one) if one == stream => break answered += 1,
                    _ => {}
                }
            }
        }
        assert!(reset.is_some_and(|after| about(after, SHORT)), "window {window}: {reset:?}");
        assert_eq!(answered, 5, "window {window}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_holds_so_much_that_its_peer_has_not_taken() {
    let mut settings = settings();
    settings.bounds.stalled = SHORT;
    settings.bounds.unsent_bytes = 90_000;
    let served = serve(settings).await;
    // Each response buffers 64 KiB and the amount that its stream buffers. Two reach the limit, and
    // the third waits until they are reset.
    let mut peer = Peer::new(served.connect().await, true, 0).await;
    for stream in [1, 3] {
        peer.get(stream, "/large").await;
        let frame = peer.next().await.unwrap();
        assert_eq!((frame.kind, frame.stream), (HEADERS, stream));
    }
    peer.get(5, "/large").await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let frame = peer.next().await.unwrap();
        seen.push((frame.kind, frame.stream));
    }
    assert_eq!(seen[0].0, RST_STREAM, "{seen:?}");
    assert!(seen.contains(&(HEADERS, 5)), "{seen:?}");

    served.stop().await;
}

/// If twice this amount is buffered, responses of the connection's earlier requests are dropped.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_too_many_for_its_connection_is_given_up() {
    let mut settings = settings();
    settings.bounds.unsent_bytes = 90_000;
    let served = serve(settings).await;
    let mut peer = Peer::new(served.connect().await, true, 0).await;
    for stream in [1, 3, 5, 7, 9] {
        peer.get(stream, "/large-late").await;
    }
    let mut given_up = 0;
    while let Ok(frame) = timeout(SHORT * 4, peer.next()).await {
        given_up += u32::from(frame.unwrap().kind == RST_STREAM);
    }
    assert!((1..5).contains(&given_up), "{given_up} of 5 given up");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_of_ours_is_no_stall() {
    let mut settings = settings();
    settings.bounds.stalled = SHORT;
    settings.bounds.idle = SHORT;
    let served = serve(settings).await;
    assert!(served.ask("GET /slow HTTP/1.1").await.starts_with("HTTP/1.1 200"));
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_http2_peer_is_sent_away_and_a_deaf_one_dropped() {
    let mut idle = settings();
    idle.bounds.idle = SHORT;
    let served = serve(idle).await;
    let mut peer = Peer::new(served.connect().await, true, 1000).await;
    assert_eq!(peer.next().await.unwrap().kind, GOAWAY);
    while peer.next().await.is_some() {}
    served.stop().await;

    let mut deaf = settings();
    deaf.bounds.ping = SHORT;
    let served = serve(deaf).await;
    let start = Instant::now();
    let mut peer = Peer::new(served.connect().await, false, 1000).await;
    while peer.next().await.is_some() {}
    assert!(about(start.elapsed(), SHORT * 2), "{:?}", start.elapsed());
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_too_many_is_refused() {
    let mut settings = settings();
    settings.bounds.streams = 2;
    let served = serve(settings).await;
    let mut peer = Peer::new(served.connect().await, true, 1000).await;
    for stream in [1, 3, 5] {
        peer.get(stream, "/slow").await;
    }
    let frame = peer.next().await.unwrap();
    assert_eq!((frame.kind, frame.stream), (RST_STREAM, 5));
    assert_eq!(frame.body, [0, 0, 0, 7], "REFUSED_STREAM: may be sent again");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_listener_answers_in_the_peers_protocol() {
    let mut settings = settings();
    settings.bounds.connections = 1;
    let served = serve(settings).await;
    let mut holder = served.connect().await;
    holder.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(holder.read(&mut [0; 9]).await.unwrap() > 0);

    let answer = served.ask("GET / HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");
    let mut peer = Peer::new(served.connect().await, true, 1000).await;
    assert_eq!(peer.next().await.unwrap().kind, GOAWAY);

    drop(holder);
    let start = Instant::now();
    while !served.ask("GET / HTTP/1.1").await.starts_with("HTTP/1.1 200") {
        assert!(start.elapsed() < SHORT * 10, "a place becomes free");
    }
    served.stop().await;
}
