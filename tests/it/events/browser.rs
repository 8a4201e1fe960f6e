//! The TypeScript client in a real browser: a page of another origin decides and follows events
//! over gRPC-Web, and resumes a stream of server-sent events. The test needs the files that `script/features` fetches.

use std::{fs, path::Path, process::Stdio, time::Duration};

use agent_authority::transport::{self, Settings};
use axum::{
    Router,
    http::header::CONTENT_TYPE,
    response::Html,
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, sync::mpsc};

use crate::support::{Plain, TENANT, TestApp};

const PAGE: &str = r#"<!doctype html><script type="module" src="/page.js"></script>"#;

async fn succeeds(command: &mut Command) {
    let run = command.output().await;
    let run = run.unwrap_or_else(|why| panic!("{command:?}: {why}: run script/features"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}

/// Builds `sdk/typescript/browser/page.ts` and the library into one script.
async fn script() -> String {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("features/typescript/browser");
    let library = copy.join("sdk/typescript");
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("script/typescript");
    succeeds(Command::new(build).arg(&copy)).await;
    succeeds(Command::new("npm").args(["run", "--silent", "page"]).current_dir(&library)).await;
    fs::read_to_string(library.join("dist/page.js")).unwrap()
}

/// Starts another listener of the service, which pages of the origin may call.
async fn callable_from(app: &TestApp, origin: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let settings = Settings { origins: [origin.parse().unwrap()].into(), ..Settings::default() };
    let router = transport::Answers::layered(app.app.entry.clone(), &settings);
    let shutdown = app.supervisor.shutdown().clone().cancelled_owned();
    tokio::spawn(transport::serve(listener, router, shutdown, settings));
    base
}

/// Returns the report of the page to its own origin.
async fn reported(app: &TestApp, api_key: &str) -> Value {
    let script = script().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let setup = json!({
        "baseUrl": callable_from(app, &origin).await,
        "token": app.owner_token(),
        "apiKey": api_key,
        "tenantId": TENANT,
    });
    let (results, mut result) = mpsc::unbounded_channel::<String>();
    let report = move |body: String| {
        let results = results.clone();
        async move {
            results.send(body).unwrap();
        }
    };
    let pages = Router::new()
        .route("/", get(Html(PAGE)))
        .route("/page.js", get(([(CONTENT_TYPE, "text/javascript")], script)))
        .route("/setup", get(setup.to_string()))
        .route("/result", post(report));
    tokio::spawn(axum::serve(listener, pages).into_future());
    let profile = tempfile::tempdir().unwrap();
    let _browser = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(&origin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("chromium: script/test installs it");
    let result = tokio::time::timeout(Duration::from_secs(90), result.recv()).await;
    serde_json::from_str(&result.expect("the page reports").unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_decides_and_follows_events() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let report = reported(&app, &demo.api_key).await;

    assert_eq!(report["allowed"], "ALLOW", "{report:#}");
    assert_eq!(report["first"], 1, "{report:#}");
    let (held, event) = (&report["held"], &report["event"]);
    assert_eq!(held["decision"], "REQUIRE_APPROVAL", "{report:#}");
    assert_eq!(event["event_type"], "svc.decision.requires_approval", "{report:#}");
    assert_eq!(event["subject_ref"], held["approval_id"], "{report:#}");
    assert_eq!(event["correlation_id"], held["decision_id"], "{report:#}");
    let path = format!("/api/v1/events?tenant_id={TENANT}&limit=500");
    let (_, log) = app.owner().text("GET", &path, None).await;
    assert!(log.contains(report["bytes"].as_str().unwrap()), "{report:#}\n{log}");

    // A client of its own resumes an interrupted stream: CORS permits its `Last-Event-ID`.
    assert_eq!((report["interrupted"].text(), report["resumed"].text()), ("1", "2"));

    let details = json!([{"field": "action", "problem": "is required"}]);
    assert_eq!(report["invalid"]["code"], "invalid_request", "{report:#}");
    assert_eq!(report["invalid"]["details"], details, "{report:#}");
    assert_eq!(report["anonymous"]["code"], "unauthenticated", "{report:#}");
    assert_eq!(report["ahead"]["code"], "sequence_ahead", "{report:#}");
    assert_eq!(report["ahead"]["metadata"]["oldest"], "1", "{report:#}");
    // The client does not accept an API key in a page.
    assert_eq!(report["key"], "TypeError", "{report:#}");
}
