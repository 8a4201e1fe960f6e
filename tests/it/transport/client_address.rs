//! If a trusted proxy reports an unreadable client address, the call has no client address. It
//! never counts as the proxy's own.

use http::HeaderValue;
use serde_json::{Value, json};

use super::server::{serve, settings};
use crate::support::{Client, TestApp, Wishes};

/// Makes a call from the trusted proxy on this machine, with these lines of `X-Forwarded-For`.
/// Returns the status.
async fn status(client: &Client, path: &str, body: Option<&Value>, lines: &[&[u8]]) -> u16 {
    let url = format!("{}{path}", client.base);
    let mut request = match body {
        Some(body) => client.http.post(url).json(body),
        None => client.http.get(url),
    };
    if !client.token.is_empty() {
        request = request.bearer_auth(&client.token);
    }
    for line in lines {
        request = request.header("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_for_the_proxys_addresses_is_refused_to_a_client_that_cannot_be_read() {
    let app = TestApp::wished(Wishes { proxied: true, ..Wishes::default() }).await;
    app.demo().await;
    let owner = app.owner();
    let key = async |addresses: &[&str]| {
        let body = json!({"tenant_id": "svc:tenant:acme", "label": addresses.join(" "),
                          "scopes": ["runtime:read"], "ip_allowlist": addresses});
        let (status, made) = owner.post("/api/v1/api-keys", body).await;
        assert_eq!(status, 201, "{made:#}");
        app.client(made["secret"].as_str().unwrap())
    };
    let inside = key(&["127.0.0.0/8", "10.0.0.0/8"]).await;
    let outside = key(&["203.0.113.9"]).await;
    let path = "/v1/entities/svc:agent:acme:invoice-bot";
    for (lines, from_inside, from_outside) in [
        (&[][..], 200, 403),
        (&[&b"10.1.2.3"[..]], 200, 403),
        (&[b"203.0.113.9"], 403, 200),
        // nginx appends the client's address to the header that the client sent.
        (&[b"\xff, 203.0.113.9"], 403, 200),
        (&[b"127.0.0.1", b"\xff, 203.0.113.9"], 403, 200),
        // The entry that the proxy itself added is unreadable.
        (&[b"\xff"], 403, 403),
        (&[b"\xc3\xa9"], 403, 403),
        (&[b"203.0.113.9, zz"], 403, 403),
        (&[b"203.0.113.9,"], 403, 403),
        (&[b"203.0.113.9, fe80::1%lo"], 403, 403),
        (&[b"127.0.0.1", b""], 403, 403),
        (&[b"127.0.0.1, \xff, 127.0.0.1"], 403, 403),
        (&[b"[203.0.113.9]"], 403, 403),
    ] {
        assert_eq!(status(&inside, path, None, lines).await, from_inside, "inside: {lines:?}");
        assert_eq!(status(&outside, path, None, lines).await, from_outside, "outside: {lines:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_cannot_be_read_share_a_limit_of_their_own() {
    let app = TestApp::wished(Wishes { proxied: true, ..Wishes::default() }).await;
    let anyone = app.client("");
    let mut number = 0;
    let mut ask = async |lines: &[&[u8]]| {
        number += 1;
        let body = json!({"email": "lee@globex.example", "message": format!("{number}")});
        status(&anyone, "/api/consultant-lead", Some(&body), lines).await
    };
    let unreadable: [&[u8]; 6] =
        [b"\xff", b"zz", b"", b"203.0.113.9, fe80::1%lo", b"\xfe", b"1.2.3"];
    let (last, five) = unreadable.split_last().unwrap();
    for line in five {
        assert_eq!(ask(&[line]).await, 200, "{line:?}");
    }
    assert_eq!(ask(&[last]).await, 429, "one limit for all of them");
    assert_eq!(ask(&[]).await, 200, "and it is not the proxy's");
    assert_eq!(ask(&[b"\xff, 203.0.113.9"]).await, 200, "and it is not another client's");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_knows_no_address_where_it_cannot_read_one() {
    let mut settings = settings();
    settings.trusted_proxies = ["127.0.0.0/8".parse().unwrap()].into();
    let served = serve(settings).await;
    let ask = async |line: &str| {
        served.ask(&format!("GET /peer HTTP/1.1\r\nx-forwarded-for: {line}")).await
    };
    assert!(ask("é").await.ends_with("unknown"));
    assert!(ask("é, 203.0.113.9").await.ends_with("203.0.113.9"));
    served.stop().await;
}
