//! Headers and format of every response, whether the router, a library, a panic or the transport
//! creates it.

use agent_authority::transport::Surfaces;

use super::server::{serve, settings};

const SECURITY: [&str; 7] = [
    "content-security-policy: default-src 'none'",
    "x-content-type-options: nosniff",
    "x-frame-options: DENY",
    "referrer-policy: no-referrer",
    "permissions-policy: camera=()",
    "cross-origin-opener-policy: same-origin",
    "cross-origin-resource-policy: same-origin",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_security_headers_and_every_error_its_shape() {
    let served = serve(settings()).await;
    for (ask, status, error) in [
        ("GET / HTTP/1.1", 200, None),
        ("GET /nowhere HTTP/1.1", 404, Some("not_found")),
        ("DELETE / HTTP/1.1", 405, Some("method_not_allowed")),
        ("GET /panic HTTP/1.1", 500, Some("internal")),
        ("POST /echo HTTP/1.1\r\ncontent-length: 5000", 413, Some("too_large")),
    ] {
        let answer = served.ask(&format!("{ask}\r\nx-request-id: mine")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        for header in SECURITY.iter().chain(&["cache-control: no-store", "x-request-id: mine"]) {
            assert!(answer.contains(header), "{ask}: no {header} in {answer}");
        }
        assert!(!answer.contains("strict-transport-security"), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
        if let Some(error) = error {
            let body = answer.split("\r\n\r\n").nth(1).unwrap();
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["ok"], false);
            assert_eq!(body["error"], error);
            assert_eq!(body["details"], serde_json::json!([]));
            assert_eq!(body["request_id"], "mine");
        }
    }
    let answer = served.ask("DELETE / HTTP/1.1").await;
    assert!(answer.contains("allow: GET,HEAD"), "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_cacheable_only_if_marked_and_hsts_is_sent_over_https() {
    let mut settings = settings();
    settings.https = true;
    let served = serve(settings).await;
    let answer = served.ask("GET /kept HTTP/1.1").await;
    assert!(answer.contains("cache-control: max-age=60"), "{answer}");
    assert!(!answer.contains("no-store"), "{answer}");
    assert!(answer.contains("strict-transport-security: max-age=63072000"), "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_caller_is_refused_in_grpc() {
    let served = serve(settings()).await;
    for (path, status) in [("/no.Service/Method", 12), ("/panic", 13)] {
        let method = if path == "/panic" { "GET" } else { "POST" };
        let kind = "application/grpc-web+proto";
        let answer = served.ask(&format!("{method} {path} HTTP/1.1\r\ncontent-type: {kind}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(&format!("grpc-status: {status}\r\n")), "{answer}");
        assert!(answer.contains(&format!("content-type: {kind}\r\n")), "{answer}");
        assert!(answer.contains("x-request-id: "), "{answer}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_host() {
    let served = serve(settings()).await;
    for (head, status) in [
        ("GET / HTTP/1.1\r\nhost: x", 200),
        ("GET / HTTP/1.0", 200),
        ("GET / HTTP/1.1", 400),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: x", 400),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: y", 400),
        ("GET / HTTP/1.1\r\nhost: x/y", 400),
    ] {
        let answer = served.send(&format!("{head}\r\nconnection: close\r\n\r\n")).await;
        let line = answer.lines().next().unwrap_or_default();
        assert!(line.contains(&format!(" {status} ")), "{head}: {answer}");
        if status == 400 {
            assert!(answer.contains(r#""details":[{"field":"host","problem":"#), "{answer}");
            assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
        }
    }
    served.stop().await;
}

/// Malformed HTTP never becomes a request. hyper answers it: the response layer is not involved.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_http_are_answered_without_a_body_and_closed() {
    let served = serve(settings()).await;
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nlong: {}\r\n\r\n", "x".repeat(20_000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n", 400),
        (&long, 431),
    ] {
        let answer = served.send(request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("content-length: 0\r\n"), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_echoed_when_sane_and_made_when_not() {
    let served = serve(settings()).await;
    let id = async |sent: &str| {
        let answer = served.ask(&format!("GET /id HTTP/1.1\r\nx-request-id: {sent}")).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("x-request-id: {body}")), "{answer}");
        body.to_owned()
    };
    assert_eq!(id("a-b_c.1").await, "a-b_c.1");
    let long = "x".repeat(129);
    for sent in ["", "two words", &long] {
        let made = id(sent).await;
        assert!(made.len() == 32 && made.bytes().all(|c| c.is_ascii_hexdigit()), "{made}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_configured_origin_may_call_and_no_other() {
    let mut settings = settings();
    settings.origins = ["https://console.example.org".parse().unwrap()].into();
    let served = serve(settings).await;
    let preflight = async |origin: &str| {
        let asked = "access-control-request-method: POST\r\n\
             access-control-request-headers: authorization,x-grpc-web,last-event-id";
        served.ask(&format!("OPTIONS /echo HTTP/1.1\r\norigin: {origin}\r\n{asked}")).await
    };
    let answer = preflight("https://console.example.org").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let allowed = "access-control-allow-origin: https://console.example.org";
    assert!(answer.contains(allowed), "{answer}");
    // The allowed headers include those for resuming streams, caching and tracing.
    for name in
        ["x-grpc-web", "last-event-id", "cache-control", "if-none-match", "tracestate", "baggage"]
    {
        assert!(answer.contains(name), "{name}: {answer}");
    }
    assert!(answer.contains("x-frame-options: DENY"), "{answer}");
    let answer = preflight("https://evil.example.org").await;
    assert!(!answer.contains("access-control-allow-origin"), "{answer}");

    let ask = "GET /nowhere HTTP/1.1\r\norigin: https://console.example.org";
    let answer = served.ask(ask).await;
    assert!(answer.contains(allowed), "{answer}");
    let exposed = "access-control-expose-headers: grpc-status,grpc-message,grpc-status-details-bin";
    assert!(answer.contains(exposed), "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_origin_configured_means_no_cors() {
    let served = serve(settings()).await;
    let answer = served.ask("OPTIONS /echo HTTP/1.1\r\norigin: https://x.example.org").await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(!answer.contains("access-control"), "{answer}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_on_another_surfaces_address_is_not_found() {
    let mut settings = settings();
    settings.surfaces = Surfaces::GATEWAY;
    let served = serve(settings).await;
    for (path, status) in
        [("/api/v1/tenants", 404), ("/v1/directory", 200), ("/health", 200), ("/peer", 404)]
    {
        let answer = served.ask(&format!("GET {path} HTTP/1.1")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_is_the_socket_unless_a_trusted_proxy_says_otherwise() {
    let forwarded = "GET /peer HTTP/1.1\r\nx-forwarded-for: 198.51.100.7";
    let served = serve(settings()).await;
    assert!(served.ask(forwarded).await.ends_with("127.0.0.1"));
    served.stop().await;
    let mut settings = settings();
    settings.trusted_proxies = ["127.0.0.0/8".parse().unwrap()].into();
    let served = serve(settings).await;
    assert!(served.ask(forwarded).await.ends_with("198.51.100.7"));
    served.stop().await;
}
