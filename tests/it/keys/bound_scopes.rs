//! A key that is bound to agents has only scopes that it can use.

use authority_api::identity::api_key::SCOPES;
use serde_json::{Value, json};

use crate::support::{Answered, Plain, TENANT, TestApp, only};

const BOT: &str = "svc:agent:acme:invoice-bot";
/// The operations of these scopes affect every agent of the tenant.
const UNBOUND: [&str; 2] = ["webhooks:write", "reality:write"];

/// Asserts that the refusal names the field and exactly these scopes.
#[track_caller]
fn names((status, refused): (u16, Value), scopes: &[&str]) {
    let fault = &refused["details"][0];
    assert_eq!((status, fault["field"].text()), (400, "principal_ids"), "{refused:#}");
    let text = refused.to_string();
    for scope in SCOPES {
        let is_named = text.contains(&format!("`{scope}`"));
        assert_eq!(is_named, scopes.contains(&scope), "{scope}: {refused:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_key_is_created_with_scopes_that_it_can_use() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let create = async |scopes: &[&str]| {
        let body = json!({"tenant_id": TENANT, "label": "bot", "scopes": scopes,
                          "principal_ids": [BOT]});
        app.owner().create_api_key(body).await
    };
    for scope in SCOPES {
        if UNBOUND.contains(&scope) {
            names(create(&[scope]).await, &[scope]);
        } else {
            let (status, made) = create(&[scope]).await;
            assert_eq!(status, 201, "{scope}: {made:#}");
        }
    }
    names(create(&["runtime:write", "reality:write", "webhooks:write"]).await, &UNBOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_scopes_or_agents_leaves_no_scope_without_use() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let admin = app.person(TENANT, "admin", "ann@acme.example");
    let body = json!({"label": "bot", "scopes": ["runtime:read"], "principal_ids": [BOT]});
    let made = admin.create_api_key(body).await.assert_status(201);
    let api_key_id = made["api_key"]["id"].as_str().unwrap();
    let wider = only("scopes", ["runtime:read", "reality:write"]);
    names(admin.update_api_key(api_key_id, wider).await, &["reality:write"]);
    let (_, kept) = admin.get_api_key(api_key_id).await;
    assert_eq!(kept["api_key"]["scopes"].texts(), ["runtime:read"], "{kept:#}");
    // Both change together: the key then has no agents, or no such scope.
    let unbound = json!({"scopes": ["runtime:read", "webhooks:write"], "principal_ids": null});
    admin.update_api_key(api_key_id, unbound).await.assert_status(200);
    names(
        admin.update_api_key(api_key_id, only("principal_ids", [BOT])).await,
        &["webhooks:write"],
    );
    let (_, kept) = admin.get_api_key(api_key_id).await;
    assert_eq!(kept["api_key"]["principal_ids"], Value::Null, "{kept:#}");
    let narrower = json!({"scopes": ["runtime:read"], "principal_ids": [BOT]});
    admin.update_api_key(api_key_id, narrower).await.assert_status(200);
}
