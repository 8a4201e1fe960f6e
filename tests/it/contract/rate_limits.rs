//! The service publishes the limits that it enforces.

use agent_authority::routes::ROUTES;
use serde_json::{Value, json};

use crate::support::{Client, TestApp};

/// Methods that count their calls for a limit of the caller. The tests of these limits check the
/// headers.
const COUNTED: [&str; 10] = [
    "ConsultantDirectoryService/GetDirectoryConsultant",
    "DecisionService/EvaluateDecision",
    "HookService/DecideHook",
    "PublicLeadService/CaptureLead",
    "RealitySnapshotService/FeedRealitySnapshot",
    "RealitySnapshotService/FeedRealitySnapshots",
    "RuntimeService/Authorize",
    "RuntimeService/BatchEvaluate",
    "RuntimeService/Evaluate",
    "WebhookDeliveryService/TestWebhookEndpoint",
];

#[test]
fn the_document_declares_the_headers_where_a_limit_counts_and_for_each_refusal() {
    let whole: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let headers = ["RateLimit", "RateLimit-Policy"];
    let refused = &whole["components"]["responses"]["429"]["headers"];
    assert!(headers.iter().all(|name| refused[name].is_object()), "{refused}");
    for route in ROUTES {
        let responses = &whole["paths"][route.path][route.method.to_lowercase()]["responses"];
        assert_eq!(responses["429"]["$ref"], "#/components/responses/429", "{}", route.path);
        let short = route.rpc.rsplit('.').next().unwrap();
        let is_limited = route.streams || COUNTED.contains(&short);
        let successes = responses.as_object().unwrap().iter();
        for (status, response) in successes.filter(|(status, _)| status.starts_with('2')) {
            for name in headers {
                let declared = response["headers"][name].is_object();
                assert_eq!(
                    declared, is_limited,
                    "{} {} {status}: {name}",
                    route.method, route.path
                );
            }
        }
    }
}

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
    let (_, refused) = anyone.get("/v1/directory/consultants/none").await;
    let text = refused["message"].as_str().unwrap();
    assert!(text.contains("60 in 60 seconds"), "{text}");
    let admin = app.person("svc:tenant:acme", "admin", "a@example.org");
    assert_ne!(admin.get("/api/v1/rate-limits").await.0, 200);
}

/// A tenant's people see the limits of their tenant and its keys, and none of another tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_reads_its_own_limits() {
    let app = TestApp::seeded().await;
    let owner = app.owner();
    let body = json!({"name": "Other", "slug": "other", "decisions_per_second": 7});
    assert_eq!(owner.post("/api/v1/tenants", body).await.0, 201);
    for (tenant, limit) in [("acme", 5), ("other", 6)] {
        let key = json!({"tenant_id": tenant, "label": "limited", "scopes": ["runtime:read"],
            "decisions_per_second": limit});
        let (status, made) = owner.post("/api/v1/api-keys", key).await;
        assert_eq!(status, 201, "{made:#}");
    }
    let own = async |tenant: &str, role: &str| {
        let person = app.person(tenant, role, "p@example.org");
        let (status, listed) = person.get("/api/v1/app/rate-limits").await;
        let limits = listed["rate_limits"].as_array().cloned().unwrap_or_default();
        let own = limits.iter().filter(|limit| !limit["tenant_id"].is_null());
        (status, own.map(|limit| limit["limit"].clone()).collect::<Vec<_>>(), limits.len())
    };
    assert_eq!(own("svc:tenant:acme", "admin").await, (200, vec![json!(5)], 6));
    assert_eq!(own("svc:tenant:other", "auditor").await, (200, vec![json!(6), json!(7)], 7));
    assert_eq!(own("svc:tenant:acme", "viewer").await.0, 403);
}
