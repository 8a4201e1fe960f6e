//! The service publishes the limits that it enforces.

use serde_json::json;

use crate::support::{Client, TestApp};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_limit_is_listed() {
    let app = TestApp::start().await;
    let (status, listed) = app.owner().get("/api/v1/rate-limits").await;
    assert_eq!(status, 200, "{listed:#}");
    let limit = |name: &str, limit: u32, seconds: u32| json!({"name": name, "limit": limit, "window_seconds": seconds, "tenant_id": null, "api_key_id": null});
    let expected = json!([
        limit("directory_per_address", 60, 60),
        limit("leads", 300, 3600),
        limit("leads_per_address", 5, 600),
        limit("reality_snapshots_per_anchor_and_key", 10, 10),
        limit("webhook_tests_per_endpoint", 10, 60),
    ]);
    assert_eq!(listed, json!({"ok": true, "rate_limits": expected}));
    // This test exceeds only this limit. Other tests cover the others.
    let anyone = Client::new(app.base_url(), "");
    for n in 0..61 {
        let (status, _) = anyone.text("GET", "/v1/directory/consultants/none", None).await;
        assert_eq!(status, if n < 60 { 404 } else { 429 }, "{n}");
    }
    let admin = app.person("svc:tenant:acme", "admin", "a@example.org");
    assert_ne!(admin.get("/api/v1/rate-limits").await.0, 200);
}
