//! Request heads that two servers could interpret differently are refused.

use super::{
    http2::{DATA, HEADERS, Peer},
    server::{serve, settings},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let served = serve(settings()).await;
    let post = "POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    let body = "2\r\n{}\r\n0\r\n\r\n";
    for (request, status) in [
        ("GET health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 400),
        ("GET health:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 400),
        ("GET * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 400),
        ("GET http://x/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 200),
        (format!("{post}transfer-encoding: chunked\r\n\r\n{body}"), 200),
        (
            format!("{post}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n{body}"),
            400,
        ),
        (format!("{post}transfer-encoding: identity, chunked\r\n\r\n{body}"), 400),
        (format!("{post}transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n{body}"), 400),
        (
            format!(
                "{post}content-type: application/json\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{{}}"
            ),
            400,
        ),
        (
            format!(
                "{post}content-type: application/json; charset=utf-16\r\ncontent-length: 2\r\n\r\n{{}}"
            ),
            415,
        ),
        (
            format!(
                "{post}content-type: application/json; charset=utf-8\r\ncontent-length: 2\r\n\r\n{{}}"
            ),
            200,
        ),
    ] {
        let answer = served.send(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
    served.stop().await;
}

/// The service reads no bytes after such a request, because they might belong to its body.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_after_a_body_of_unclear_length() {
    let served = serve(settings()).await;
    let request = "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity, chunked\r\n\r\n\
                   0\r\n\r\nGET /peer HTTP/1.1\r\nhost: x\r\n\r\n";
    let answer = served.send(request).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_other_than_the_authority_is_refused_over_http2() {
    let served = serve(settings()).await;
    for (host, refused) in [("x", false), ("X", false), ("evil", true), ("x:80", true)] {
        let mut peer = Peer::new(served.connect().await, true, 10_000).await;
        peer.get_with(1, "/health", &[("host", host)]).await;
        let mut told = String::new();
        while !told.contains("live") && !told.contains('}') {
            let frame = peer.next().await.unwrap();
            assert!([HEADERS, DATA].contains(&frame.kind), "{host}");
            if frame.kind == DATA {
                told.push_str(&String::from_utf8_lossy(&frame.body));
            }
        }
        assert_eq!(told.contains("`:authority`"), refused, "{host}: {told}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_past_the_limit_is_refused_over_http2_and_its_connection_stays() {
    let served = serve(settings()).await;
    let mut peer = Peer::new(served.connect().await, true, 10_000).await;
    let (names, value) = ((0..120).map(|n| format!("x-{n}")).collect::<Vec<_>>(), "y".repeat(120));
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
    for (stream, headers, expected) in
        [(1, &many[..], "too_large"), (3, &many[..60], "live"), (5, &many[..], "16384 bytes")]
    {
        peer.get_with(stream, "/health", headers).await;
        let mut told = String::new();
        while !told.contains("live") && !told.contains('}') {
            let frame = peer.next().await.unwrap();
            assert!(frame.stream == stream && [HEADERS, DATA].contains(&frame.kind));
            if frame.kind == DATA {
                told.push_str(&String::from_utf8_lossy(&frame.body));
            }
        }
        assert!(told.contains(expected), "{expected}: {told}");
    }
    served.stop().await;
}
