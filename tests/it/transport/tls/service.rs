//! The whole service over TLS: REST, gRPC, hooks of coding agents, and the command line.

use std::net::SocketAddr;

use agent_authority::transport::{Settings, Surfaces};
use authority_config::{Config, OpenToAll};
use authority_model::proto::runtime::{Decision, runtime_service_client::RuntimeServiceClient};
use serde_json::json;
use tonic::{Code, Request};

use crate::{
    command_line::spawn,
    support::{
        Client, Plain, TestApp, asking, evaluate,
        tls::{Issued, TlsFiles},
    },
};

const EVALUATE: &str = "/api/v1/runtime/evaluate";

/// Serves the service at another address, with TLS.
async fn listen(app: &TestApp, files: &TlsFiles) -> SocketAddr {
    let (tls, _worker) = files.load();
    let tls = Some(tls.on(Surfaces::ALL));
    app.listening_as(Settings { tls, ..Settings::default() }).await
}

#[track_caller]
fn client(files: &TlsFiles, at: SocketAddr, token: &str, certificate: Option<&Issued>) -> Client {
    Client { base: format!("https://{at}"), token: token.to_owned(), http: files.http(certificate) }
}

/// Evaluates a request over gRPC.
async fn evaluated(
    files: &TlsFiles,
    at: SocketAddr,
    token: &str,
    certificate: Option<&Issued>,
) -> Result<Decision, tonic::Status> {
    let mut grpc = RuntimeServiceClient::new(files.channel(at, certificate).await);
    let context = json!({"amount": 1200, "currency": "EUR", "jurisdiction": "DE"});
    let mut request = Request::new(evaluate(&context));
    let bearer = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    grpc.evaluate(request).await.map(|answer| answer.into_inner().decision())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_and_grpc_decide_over_tls() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let files = TlsFiles::new();
    let at = listen(&app, &files).await;
    let (status, answer) =
        client(&files, at, &key, None).post(EVALUATE, asking(1200.0, "DE")).await;
    assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
    assert_eq!(evaluated(&files, at, &key, None).await.unwrap(), Decision::Allow);
}

/// A credential does not replace the client's certificate, nor the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_needs_its_surface_and_its_credential() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let files = TlsFiles::with_clients(|tls| {
        tls.app_clients = vec!["agents.example.org".to_owned()];
        tls.admin_clients = vec!["admin.example.org".to_owned()];
    });
    let at = listen(&app, &files).await;
    let agents = files.clients.client("agents.example.org");
    let admin = files.clients.client("admin.example.org");
    for (certificate, token, rest, grpc) in [
        (&agents, key.as_str(), 200, None),
        (&agents, "", 401, Some(Code::Unauthenticated)),
        (&admin, key.as_str(), 403, Some(Code::PermissionDenied)),
        (&admin, app.owner_token(), 403, Some(Code::PermissionDenied)),
    ] {
        let client = client(&files, at, token, Some(certificate));
        let (status, answer) = client.post(EVALUATE, asking(1200.0, "DE")).await;
        assert_eq!(status, rest, "{answer:#}");
        let refused = evaluated(&files, at, token, Some(certificate)).await.err();
        assert_eq!(refused.as_ref().map(tonic::Status::code), grpc, "{refused:?}");
    }
    let owner = app.owner_token();
    let tenants = "/api/v1/tenants";
    assert_eq!(client(&files, at, owner, Some(&admin)).get(tenants).await.0, 200);
    assert_eq!(client(&files, at, owner, Some(&agents)).get(tenants).await.0, 403);
    // A coding agent runs a tool if its hook fails: also this refusal is a denial in its form.
    let hook = "/v1/hooks/claude-code?purpose=software-development";
    let (status, answer) = client(&files, at, &key, Some(&agents)).post(hook, json!({})).await;
    assert_eq!(status, 200, "{answer:#}");
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer:#}");
}

#[test]
fn browsers_are_held_to_https_only_at_a_configured_url() {
    let https = |tls: bool, url: Option<&str>| {
        let mut config = if tls { TlsFiles::new().config } else { Config::default() };
        config.listen.public_url = url.map(str::to_owned);
        (Settings::new(&config, Surfaces::ALL).https, config.https())
    };
    assert_eq!(https(false, None), (false, false));
    // Cookies are for https. The header would apply to every port of `localhost`.
    assert_eq!(https(true, None), (false, true));
    assert_eq!(https(true, Some("https://authority.example.org")), (true, true));
    assert_eq!(https(false, Some("https://authority.example.org")), (true, true));
    assert_eq!(https(false, Some("http://127.0.0.1:8080")), (false, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_uses_tls() {
    let app = TestApp::shared().await;
    let files = TlsFiles::with_clients(|tls| tls.admin_clients = vec!["cli".to_owned()]);
    let at = listen(app, &files).await;
    let command = async |typed: &str, more: &[(&'static str, String)]| {
        let args = typed.split(' ').map(str::to_owned).collect();
        spawn(args, [files.environment(), more.to_vec()].concat()).await
    };
    let list =
        format!("principals list --tenant acme --url https://{at} --token {}", app.owner_token());
    let issued = files.clients.client("cli");
    files.write("cli.pem", &format!("{}{}", issued.certificate, issued.key));
    let path = |name: &str| files.path(name).display().to_string();
    let trusted = ("SSL_CERT_FILE", path("servers.pem"));
    let own = ("AGENT_AUTHORITY_CLIENT_CERTIFICATE", path("cli.pem"));
    let (code, _, told) = command(&list, &[]).await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("certificate") && told.contains("set SSL_CERT_FILE to"), "{told}");
    let (code, _, told) = command(&list, std::slice::from_ref(&trusted)).await;
    assert_eq!(code, 1, "{told}");
    let (code, table, told) = command(&list, &[trusted.clone(), own]).await;
    assert_eq!(code, 0, "{told}");
    assert!(table.contains("invoice-bot"), "{table}");
    let missing = ("AGENT_AUTHORITY_CLIENT_CERTIFICATE", path("none.pem"));
    let (code, _, told) = command(&list, &[trusted, missing]).await;
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("AGENT_AUTHORITY_CLIENT_CERTIFICATE"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_health_check_works_with_tls_and_says_how_with_client_certificates() {
    let app = TestApp::shared().await;
    for (open, expected) in [
        (None, Ok(())),
        (Some(vec![OpenToAll::Health]), Ok(())),
        (Some(vec![]), Err("add `health` to `tls.without_certificate`")),
        (Some(vec![OpenToAll::Site]), Ok(())),
    ] {
        let files = match &open {
            None => TlsFiles::new(),
            Some(open) => TlsFiles::with_clients(|tls| {
                tls.admin_clients = vec!["admin".to_owned()];
                tls.without_certificate.clone_from(open);
            }),
        };
        let at = listen(app, &files).await;
        let args = ["healthcheck", "--listen", &at.to_string()].map(str::to_owned).to_vec();
        let (code, shown, told) = spawn(args, files.environment()).await;
        match expected {
            Ok(()) => assert_eq!((code, shown.trim()), (0, "ready"), "{open:?}: {told}"),
            Err(advice) => assert!(code == 1 && told.contains(advice), "{open:?}: {told}"),
        }
    }
}
