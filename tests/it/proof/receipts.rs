//! The receipt page: facts without script, and verified in a real browser with it.

use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use super::{asking, decided, sealed, sealing};
use crate::support::Client;

async fn page(client: &Client, id: &str) -> (u16, String) {
    client.text("GET", &format!("/receipts/{id}"), None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_facts_are_there_for_anybody_without_script() {
    let (app, client) = sealing().await;
    let anybody = app.client("");
    let mut ask = asking(1234.0, "DE");
    ask["context"]["note"] = json!("hush </pre><script>");
    let id = decided(&client, ask).await;
    let (status, shown) = page(&anybody, &id).await;
    assert_eq!(status, 200);
    for fact in [
        "Allowed",
        "invoice-bot",
        "payment.execute",
        "invoice-settlement",
        &id,
        "permission_granted",
        "delegation.revoked",
        "Not sealed",
        "Not yet verified",
    ] {
        assert!(shown.contains(fact), "{fact}: {shown}");
    }
    assert!(!shown.contains("hush") && !shown.contains("1234"), "no value of the context");
    sealed(&client, &id).await;
    assert!(page(&anybody, &id).await.1.contains("/log/acme"));
    for (ask, headline) in
        [(asking(25_000.0, "DE"), "Held for approval"), (asking(1.0, "US"), "Denied")]
    {
        let id = decided(&client, ask).await;
        let (_, shown) = page(&anybody, &id).await;
        assert!(shown.contains(headline), "{shown}");
    }
    let (status, missing) = page(&anybody, &format!("svc:decision:{}", "0".repeat(64))).await;
    assert_eq!(status, 404);
    assert!(missing.contains("No such receipt"));
    let (status, _) = page(&anybody, "%3Cscript%3E").await;
    assert_eq!(status, 404);
    let answer = anybody.http.get(format!("{}/receipts/{id}", anybody.base)).send().await.unwrap();
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
    for file in ["style.css", "verify.js"] {
        assert_eq!(anybody.text("GET", &format!("/receipts/{file}"), None).await.0, 200);
    }
}

/// What the browser makes of a page once its script ran, and what it logged.
async fn browsed(url: &str) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let page = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom", url])
        .kill_on_drop(true)
        .output();
    let page = tokio::time::timeout(Duration::from_secs(90), page).await.unwrap();
    let page = page.expect("chromium: script/test installs it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&page.stdout), text(&page.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_verifies_the_signature() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(12.5, "DE")).await;
    let (dom, log) = browsed(&format!("{}/receipts/{id}", app.base_url())).await;
    assert!(dom.contains(r#"id="verification" data-state="verified""#), "{dom}");
    assert!(!log.contains("CONSOLE"), "nothing is blocked or amiss: {log}");
}
