//! `login`, `whoami`, `logout`: the device flow against a provider of the test's own.

use std::{
    collections::HashMap,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::reads::spawn;
use crate::support::TestApp;

/// The members of a form.
fn form(body: &str) -> Value {
    form_urlencoded::parse(body.as_bytes()).collect::<HashMap<_, _>>().into_iter().collect()
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

/// An identity provider whose person agrees when asked the second time; tokens end after `lasts` seconds.
async fn provider(token: String, lasts: u64) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let (asked, refreshed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let metadata = json!({"issuer": issuer, "token_endpoint": format!("{issuer}/token"),
        "device_authorization_endpoint": format!("{issuer}/device")});
    let page = format!("{issuer}/activate");
    let count = Arc::clone(&refreshed);
    let device = async move |body: String| {
        let form = form(&body);
        assert_eq!(form["client_id"], "cli");
        assert!(form["scope"].as_str().unwrap().contains("offline_access"));
        let asked = json!({"device_code": "hush", "user_code": "WDJB-MJHT",
            "verification_uri": page, "expires_in": 600, "interval": 1});
        answer(StatusCode::OK, &asked)
    };
    let tokens = async move |body: String| {
        let form = form(&body);
        let issued = json!({"access_token": token, "token_type": "Bearer", "expires_in": lasts,
            "refresh_token": "again"});
        match form["grant_type"].as_str() {
            Some("refresh_token") if form["refresh_token"] == "again" => {
                count.fetch_add(1, Ordering::Relaxed);
                answer(StatusCode::OK, &issued)
            }
            Some("urn:ietf:params:oauth:grant-type:device_code")
                if form["device_code"] == "hush" =>
            {
                match asked.fetch_add(1, Ordering::Relaxed) {
                    0 => {
                        answer(StatusCode::BAD_REQUEST, &json!({"error": "authorization_pending"}))
                    }
                    _ => answer(StatusCode::OK, &issued),
                }
            }
            _ => answer(StatusCode::BAD_REQUEST, &json!({"error": "access_denied"})),
        }
    };
    let router = Router::new()
        .route(
            "/.well-known/openid-configuration",
            get(async move || answer(StatusCode::OK, &metadata)),
        )
        .route("/device", post(device))
        .route("/token", post(tokens));
    tokio::spawn(async { axum::serve(listener, router).await });
    (issuer, refreshed)
}

/// The output of `typed` for a user with this configuration folder.
async fn at_home(home: &Path, typed: &str) -> (i32, String, String) {
    let home = vec![("XDG_CONFIG_HOME", home.display().to_string())];
    spawn(typed.split(' ').map(str::to_owned).collect(), home).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_by_a_code_and_stays_logged_in() {
    let app = TestApp::start().await;
    app.demo().await;
    let approver = app.member_token("svc:tenant:acme", "approver");
    let (issuer, refreshed) = provider(approver, 30).await;
    let home = tempfile::tempdir().unwrap();
    let url = app.base_url();
    let (code, _, told) = at_home(home.path(), &format!("login --url {url}")).await;
    assert!(code == 2 && told.contains("--issuer"), "{told}");
    let (code, _, told) = at_home(home.path(), &format!("approvals --url {url}")).await;
    assert!(code == 2 && told.contains(&format!("agent-authority login --url {url}")), "{told}");

    let typed = format!("login --url {url} --issuer {issuer} --client-id cli");
    let (code, printed, told) = at_home(home.path(), &typed).await;
    assert_eq!(code, 0, "{told}");
    assert!(
        told.contains(&format!("Open {issuer}/activate")) && told.contains("WDJB-MJHT"),
        "{told}"
    );
    let start = format!("approver@example.org, approver of svc:tenant:acme, on {url}/, until ");
    assert!(printed.starts_with(&start), "{printed}");
    let file = home.path().join("agent-authority/logins.json");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

    // From now on no flag is needed; a token that ends within a minute is refreshed first.
    let (code, _, told) = at_home(home.path(), "approvals list").await;
    assert_eq!((code, told.as_str()), (0, "no pending approvals\n"));
    assert_eq!(refreshed.load(Ordering::Relaxed), 1);
    let (_, printed, _) = at_home(home.path(), "whoami --json").await;
    let who: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&who["role"], &who["who"]), (&json!("approver"), &json!("approver@example.org")));
    // The service refuses what the role may not, and the token itself is never shown.
    let (code, printed, told) = at_home(home.path(), "tenants list").await;
    assert!(code == 1 && told.starts_with("error: forbidden: "), "{told}");
    assert!(!format!("{printed}{told}").contains("eyJ"), "{told}");

    let (code, printed, _) = at_home(home.path(), "logout").await;
    assert_eq!((code, printed), (0, format!("logged out of {url}/\n")));
    let (code, _, told) = at_home(home.path(), &format!("approvals --url {url}")).await;
    assert!(code == 2 && told.contains("needs a token"), "{told}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_none_or_refuses_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (issuer, _) = provider(String::new(), 30).await;
    for (issuer, problem) in [
        ("http://127.0.0.1:9".to_owned(), "/.well-known/openid-configuration: "),
        (format!("{issuer}/other"), "/.well-known/openid-configuration: "),
    ] {
        let typed = format!("login --url http://127.0.0.1:9 --issuer {issuer} --client-id cli");
        let (code, printed, told) = at_home(home.path(), &typed).await;
        assert_eq!((code, printed.as_str()), (1, ""), "{told}");
        assert!(told.contains(problem), "{told}");
    }
    let typed = "login --url https://a.example --issuer http://idp.example --client-id cli";
    let (code, _, told) = at_home(home.path(), typed).await;
    assert!(code == 2 && told.contains("https only"), "{told}");
    assert!(!home.path().join("agent-authority").exists());
    let (code, _, told) = at_home(home.path(), "login --role approver --listen 127.0.0.1:9").await;
    assert!(code == 1 && told.contains("no service at 127.0.0.1:9"), "{told}");
}
