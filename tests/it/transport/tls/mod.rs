//! TLS in the service itself: protocols, versions, handshakes, and the clients that may call.

mod clients;
mod outside;
mod reload;
mod service;

use std::time::{Duration, Instant};

use authority_config::TlsVersion;
use rustls::version::{TLS12, TLS13};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client;

use super::server::{Served, about, open_for, rest, serve, settings};
use crate::support::tls::TlsFiles;
use agent_authority::transport::{Settings, Surfaces};

/// Returns the settings of an address with TLS.
#[track_caller]
fn secured(files: &TlsFiles, surfaces: Surfaces) -> Settings {
    let (tls, _worker) = files.load();
    Settings { surfaces, tls: Some(tls.on(surfaces)), ..settings() }
}

/// Starts the small service with TLS, without checks of clients.
async fn serve_tls(files: &TlsFiles) -> Served {
    serve(secured(files, Surfaces::ALL)).await
}

/// Sends a request and returns the whole response.
async fn ask(stream: &mut client::TlsStream<TcpStream>, head: &str) -> String {
    let request = format!("{head}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The service may close without a closing alert.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn an_old_version_is_refused() {
    for (minimum, with_12) in [(TlsVersion::Tls12, true), (TlsVersion::Tls13, false)] {
        let mut files = TlsFiles::new();
        files.config.tls.minimum_version = minimum;
        let served = serve_tls(&files).await;
        for (versions, expected) in [(&[&TLS12], with_12), (&[&TLS13], true)] {
            let connected = files.connect(served.address, versions, b"http/1.1", None).await;
            assert_eq!(connected.is_ok(), expected, "{minimum:?} {versions:?}: {connected:?}");
            if let Ok(mut stream) = connected {
                let answer = ask(&mut stream, "GET / HTTP/1.1").await;
                assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            }
        }
        served.stop().await;
    }
}

#[tokio::test]
async fn a_protocol_that_the_service_does_not_have_is_refused() {
    let files = TlsFiles::new();
    let served = serve_tls(&files).await;
    let refused = files.connect(served.address, &[&TLS13], b"spdy/3", None).await;
    assert!(refused.is_err(), "{refused:?}");
    // A client that negotiates HTTP/1.1 can't use HTTP/2.
    let mut stream = files.connect_http1(served.address, None).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(&[0, 0]), "{answer:?}");
    served.stop().await;
}

#[tokio::test]
async fn a_request_without_tls_gets_an_explanation_and_nothing_else() {
    let files = TlsFiles::new();
    let served = serve_tls(&files).await;
    for request in ["GET /kept HTTP/1.1\r\nhost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let answer = served.send(request).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["message"], "this address needs https", "{body}");
    }
    for garbage in ["\0\0\0\0", "get / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}not TLS at all"] {
        let answer = served.send(garbage).await;
        assert!(!answer.contains("HTTP"), "{garbage:?}: {answer}");
    }
    served.stop().await;
}

/// A handshake has a time limit, and half a handshake does not delay another peer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_finish_its_handshake_is_closed_and_delays_nobody() {
    const LIMIT: Duration = Duration::from_secs(2);
    let files = TlsFiles::new();
    let mut settings = secured(&files, Surfaces::ALL);
    settings.bounds.first_byte = LIMIT;
    let served = serve(settings).await;
    let mut silent = served.connect().await;
    let mut half = served.connect().await;
    // The head of a record with 512 bytes, and the first of them.
    half.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
    // A completed handshake without a request.
    let mut idle = files.connect_http1(served.address, None).await.unwrap();
    let start = Instant::now();
    let mut stream = files.connect_http1(served.address, None).await.unwrap();
    let answer = ask(&mut stream, "GET / HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    let idle_for = async {
        let start = Instant::now();
        let _ = idle.read_to_end(&mut Vec::new()).await;
        start.elapsed()
    };
    let (silent, half, idle) = tokio::join!(open_for(&mut silent), open_for(&mut half), idle_for);
    for (name, open) in [("silent", silent), ("half", half), ("idle", idle)] {
        assert!(about(open, LIMIT) || open < LIMIT, "{name}: {open:?}");
    }
    served.stop().await;
}

/// Peers that never finish a handshake can't keep others out: the oldest handshake is ended.
#[tokio::test]
async fn the_oldest_handshake_makes_room_for_a_new_one() {
    let files = TlsFiles::new();
    let mut settings = secured(&files, Surfaces::ALL);
    settings.bounds.handshakes = 2;
    settings.bounds.first_byte = Duration::from_secs(60);
    let served = serve(settings).await;
    let mut halves = Vec::new();
    for _ in 0..3 {
        let mut half = served.connect().await;
        half.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        halves.push(half);
    }
    assert_eq!(rest(&mut halves[0]).await, "");
    for _ in 0..3 {
        let mut stream = files.connect_http1(served.address, None).await.unwrap();
        let answer = ask(&mut stream, "GET / HTTP/1.1").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    drop(halves);
    served.stop().await;
}

/// With many unread bytes, the service waits for the peer and not for its own buffer.
#[tokio::test]
async fn a_peer_that_does_not_read_is_cut_off_with_tls_too() {
    let files = TlsFiles::new();
    let mut settings = secured(&files, Surfaces::ALL);
    settings.bounds.stalled = Duration::from_secs(1);
    let served = serve(settings).await;
    let mut stream = files.connect_http1(served.address, None).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    // The sent part of the response arrives, and then the end.
    let read = tokio::time::timeout(Duration::from_secs(10), async {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    assert!(read.await.is_ok(), "the response continued");
    served.stop().await;
}

#[tokio::test]
async fn the_address_of_a_client_is_the_same_as_without_tls() {
    let files = TlsFiles::new();
    let mut settings = secured(&files, Surfaces::ALL);
    settings.trusted_proxies = vec!["127.0.0.0/8".parse::<ipnet::IpNet>().unwrap()].into();
    let served = serve(settings).await;
    let mut stream = files.connect_http1(served.address, None).await.unwrap();
    let answer = ask(&mut stream, "GET /peer HTTP/1.1\r\nx-forwarded-for: 192.0.2.7").await;
    assert!(answer.ends_with("\r\n\r\n192.0.2.7"), "{answer}");
    served.stop().await;
}
