//! The names of clients: each surface, the metrics and the health checks.

use agent_authority::transport::{self, Settings, Surfaces};
use authority_config::OpenToAll;
use rustls::version::TLS13;
use tokio::{io::AsyncReadExt, net::TcpListener};
use tokio_util::sync::CancellationToken;

use super::{ask, secured};
use crate::{
    support::tls::{Issued, TlsFiles},
    transport::server::{serve, settings},
};

const ADMIN: &str = "/api/v1/tenants";
const SITE: &str = "/v1/directory";

/// Returns the status of a GET, or 0 if the service closed the connection instead.
async fn status(
    files: &TlsFiles,
    to: std::net::SocketAddr,
    path: &str,
    client: Option<&Issued>,
) -> u16 {
    // With TLS 1.3, the client can only learn of a refused certificate after its own handshake.
    let Ok(mut stream) = files.connect_http1(to, client).await else { return 0 };
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    if tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.is_err() {
        return 0;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    code.map_or(0, |code| code.parse().unwrap())
}

#[tokio::test]
async fn a_surface_is_for_the_clients_that_it_lists() {
    let billing = "spiffe://example.org/billing";
    let files = TlsFiles::with_clients(|tls| {
        tls.admin_clients = vec!["admin.example.org".to_owned()];
        tls.app_clients = vec![billing.to_owned()];
        tls.site_clients = vec!["*".to_owned()];
    });
    let served = serve(secured(&files, Surfaces::ALL)).await;
    let admin = files.clients.client("admin.example.org");
    let billing = files.clients.client(billing);
    let stranger = files.clients.client("stranger.example.org");
    let foreign = crate::support::tls::Authority::new().client("admin.example.org");
    // A server's certificate is not a client's.
    let server = files.servers.server();
    for (name, client, by_path) in [
        ("admin", Some(&admin), [200, 200, 200, 404]),
        ("billing", Some(&billing), [403, 200, 200, 403]),
        ("stranger", Some(&stranger), [403, 200, 200, 403]),
        ("foreign", Some(&foreign), [0, 0, 0, 0]),
        ("server", Some(&server), [0, 0, 0, 0]),
        ("none", None, [0, 0, 0, 0]),
    ] {
        for (path, expected) in [ADMIN, SITE, "/health", "/api/v1/none"].into_iter().zip(by_path) {
            assert_eq!(
                status(&files, served.address, path, client).await,
                expected,
                "{name} {path}"
            );
        }
    }
    let mut stream = files.connect_http1(served.address, Some(&stranger)).await.unwrap();
    let answer = ask(&mut stream, &format!("GET {ADMIN} HTTP/1.1")).await;
    assert!(answer.contains(r#""error":"forbidden""#), "{answer}");
    assert!(answer.contains("no name in the client certificate may call this path"), "{answer}");
    assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn a_surface_without_names_is_closed_and_one_without_certificates_is_open() {
    let files = TlsFiles::with_clients(|tls| {
        tls.admin_clients = vec!["admin.example.org".to_owned()];
        tls.without_certificate = vec![OpenToAll::Gateway];
    });
    let admin = files.clients.client("admin.example.org");
    let foreign = crate::support::tls::Authority::new().client("admin.example.org");
    let served = serve(secured(&files, Surfaces::ALL)).await;
    for (name, client, by_path) in [
        ("admin", Some(&admin), [200, 200, 403]),
        ("none", None, [403, 200, 403]),
        ("foreign", Some(&foreign), [0, 0, 0]),
    ] {
        let paths = [ADMIN, SITE, "/api/consultant-lead"];
        for (path, expected) in paths.into_iter().zip(by_path) {
            assert_eq!(
                status(&files, served.address, path, client).await,
                expected,
                "{name} {path}"
            );
        }
    }
    let mut stream = files.connect_http1(served.address, None).await.unwrap();
    let answer = ask(&mut stream, &format!("GET {ADMIN} HTTP/1.1")).await;
    assert!(answer.contains("this path needs a client certificate"), "{answer}");
    served.stop().await;
    // An address for the admin surface alone does not even complete the handshake.
    let served = serve(secured(&files, Surfaces::ADMIN)).await;
    assert_eq!(status(&files, served.address, ADMIN, None).await, 0);
    assert_eq!(status(&files, served.address, ADMIN, Some(&admin)).await, 200);
    assert_eq!(status(&files, served.address, SITE, Some(&admin)).await, 404);
    served.stop().await;
}

#[tokio::test]
async fn health_checks_can_be_open_on_their_own() {
    let files = TlsFiles::with_clients(|tls| {
        tls.admin_clients = vec!["admin.example.org".to_owned()];
        tls.without_certificate = vec![OpenToAll::Health];
    });
    let served = serve(secured(&files, Surfaces::ALL)).await;
    for (path, expected) in
        [("/health", 200), ("/", 403), (ADMIN, 403), (SITE, 403), ("/health%2f..%2f", 403)]
    {
        assert_eq!(status(&files, served.address, path, None).await, expected, "{path}");
    }
    served.stop().await;
}

/// No other form of a path leads to a surface that the client may not call.
#[tokio::test]
async fn a_path_in_another_form_is_not_another_surface() {
    let files = TlsFiles::with_clients(|tls| {
        tls.gateway_clients = vec!["gateway.example.org".to_owned()];
    });
    let client = files.clients.client("gateway.example.org");
    let served = serve(secured(&files, Surfaces::ALL)).await;
    for target in [
        "//api/v1/tenants",
        "/api//v1/tenants",
        "/%61pi/v1/tenants",
        "/api%2Fv1%2Ftenants",
        "/v1/../api/v1/tenants",
        "/v1%2F..%2Fapi/v1/tenants",
        "/./api/v1/tenants",
        "/API/v1/tenants",
        "/api/v1/tenants?x=/v1/directory",
        "http://localhost/api/v1/tenants",
        "https://other.example.org/api/v1/tenants",
        "/authority.registry.v1.TenantService/CreateTenant",
        "/console",
        "//console",
    ] {
        let mut stream = files.connect_http1(served.address, Some(&client)).await.unwrap();
        let answer = ask(&mut stream, &format!("GET {target} HTTP/1.1")).await;
        let code = answer.get(9..12).unwrap_or_default();
        // `/v1/…` belongs to the gateway, but no route has such a path.
        let is_gateways = target.starts_with("/v1/") && code == "404";
        assert!(code == "403" || is_gateways, "{target}: {answer}");
    }
    for head in ["OPTIONS * HTTP/1.1", "CONNECT localhost:443 HTTP/1.1"] {
        let mut stream = files.connect_http1(served.address, Some(&client)).await.unwrap();
        let answer = ask(&mut stream, head).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{head}: {answer}");
    }
    let mut stream = files.connect_http1(served.address, Some(&client)).await.unwrap();
    let answer = ask(&mut stream, "GET http://localhost/v1/directory HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn the_metrics_have_clients_of_their_own() {
    let files = TlsFiles::with_clients(|tls| {
        tls.admin_clients = vec!["*".to_owned()];
        tls.ops_clients = vec!["prometheus.example.org".to_owned()];
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tls, _worker) = files.load();
    let settings = Settings { tls: Some(tls.on_ops()), ..settings() };
    let shutdown = CancellationToken::new();
    let ops = transport::ops(|| "up 1\n".to_owned());
    tokio::spawn(transport::serve(listener, ops, shutdown.clone().cancelled_owned(), settings));
    let prometheus = files.clients.client("prometheus.example.org");
    let admin = files.clients.client("admin.example.org");
    for (client, metrics, other) in
        [(Some(&prometheus), 200, 404), (Some(&admin), 403, 403), (None, 0, 0)]
    {
        assert_eq!(status(&files, address, "/metrics", client).await, metrics);
        assert_eq!(status(&files, address, "/other", client).await, other);
    }
    shutdown.cancel();
}

/// A resumed session would skip the check of the certificate.
#[tokio::test]
async fn a_session_of_a_client_with_a_certificate_is_not_resumed() {
    let files = TlsFiles::with_clients(|tls| {
        tls.admin_clients = vec!["admin.example.org".to_owned()];
    });
    let served = serve(secured(&files, Surfaces::ALL)).await;
    let client = files.clients.client("admin.example.org");
    for _ in 0..2 {
        let connected = files.connect(served.address, &[&TLS13], b"http/1.1", Some(&client)).await;
        let mut stream = connected.unwrap();
        let answer = ask(&mut stream, &format!("GET {ADMIN} HTTP/1.1")).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(stream.get_ref().1.tls13_tickets_received(), 0);
    }
    served.stop().await;
}
