//! Success bodies of the admin and app surfaces begin with `ok: true`. Success bodies of the gateway
//! do not.

use serde_json::{Value, json};

use super::document;
use crate::support::TestApp;

/// Returns whether success bodies of the path begin with `ok: true`. In the interface
/// specification, the body of evaluate does not.
pub(super) fn begins_with_ok(path: &str) -> bool {
    path.starts_with("/api/") && path != "/api/v1/runtime/evaluate"
}

/// Returns whether the schema, or the schema that it refers to, has the member `ok`.
fn has_ok(schema: &Value, whole: &Value) -> bool {
    match schema["$ref"].as_str() {
        Some(name) => has_ok(whole.pointer(name.trim_start_matches('#')).unwrap(), whole),
        None => schema["properties"]["ok"].is_object(),
    }
}

#[test]
fn the_document_has_ok_by_surface() {
    let whole: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let (mut with, mut without, mut wrong) = (0, 0, Vec::new());
    for (path, operations) in whole["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                if !status.starts_with('2') {
                    continue;
                }
                let content = response["content"].as_object().into_iter().flatten();
                for (kind, content) in content {
                    // A stream has no body with members: each line is a message.
                    let expected = kind == "application/json" && begins_with_ok(path);
                    if has_ok(&content["schema"], &whole) != expected {
                        wrong.push(format!("{method} {path} {status} {kind}"));
                    }
                    *(if expected { &mut with } else { &mut without }) += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(with > 250 && without > 50, "{with} {without}");
}

/// The bodies of lists and of descriptions of the service. `contract::examples` checks the bodies
/// of writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_begin_with_ok_by_surface() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let whole = document(&app).await;
    let scopes =
        ["runtime:read", "evidence:read", "events:read", "webhooks:write", "reality:write"];
    let key = app.client(&app.api_key("svc:tenant:acme", &scopes).await);
    let admin = app.person("svc:tenant:acme", "admin", "admin@acme.example");
    let owner = app.owner();
    let (mut with, mut without) = (0, 0);
    for (path, operations) in whole["paths"].as_object().unwrap() {
        let streams = path.ends_with(":export") || path.ends_with(":stream");
        if operations["get"].is_null() || path.contains('{') || streams {
            continue;
        }
        let client = match path {
            _ if path.starts_with("/api/v1/app/") => &admin,
            _ if path.starts_with("/v1/") => &key,
            _ => &owner,
        };
        let asked = match path.as_str() {
            "/api/v1/events" => "/api/v1/events?tenant_id=svc:tenant:acme".to_owned(),
            path => path.to_owned(),
        };
        let (status, body) = client.get(&asked).await;
        if status != 200 || !body.is_object() {
            continue;
        }
        assert_eq!(body["ok"] == json!(true), begins_with_ok(path), "{path}: {body:#}");
        *(if begins_with_ok(path) { &mut with } else { &mut without }) += 1;
    }
    assert!(with > 40 && without > 8, "{with} {without}");
}

/// A client may fail without `ok`, or may write a gateway's body to a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twins_of_an_operation_differ_by_ok_alone() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let key = app.client(&app.api_key("svc:tenant:acme", &["webhooks:write"]).await);
    let admin = app.person("svc:tenant:acme", "admin", "admin@acme.example");
    let body = json!({"url": "https://hooks.example.com/authority"});
    let (status, made) = key.post("/v1/webhook-endpoints", body).await;
    assert_eq!(status, 201, "{made:#}");
    assert!(made.get("ok").is_none() && made["secret"].is_string(), "{made:#}");
    let id = made["webhook_endpoint"]["id"].as_str().unwrap();
    let (_, plain) = key.get(&format!("/v1/webhook-endpoints/{id}")).await;
    let (_, with_ok) = admin.get(&format!("/api/v1/app/webhook-endpoints/{id}")).await;
    let mut expected = json!({"ok": true});
    expected.as_object_mut().unwrap().extend(plain.as_object().unwrap().clone());
    assert_eq!(plain["webhook_endpoint"]["id"], id, "{plain:#}");
    assert_eq!(with_ok, expected);
}
