//! Policies and their versions.

use serde_json::{Value, json};

use super::rest::{App, id};

const FORBID: &str = r#"@id("a") forbid(principal, action, resource)
       when { context has amount && context.amount.greaterThan(decimal("5.0")) };"#;
const OTHER: &str = r#"@id("b") forbid(principal, action, resource);"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_text_waits_until_it_is_activated() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let draft = app.make("/policies", json!({"tenant_id": tenant, "regime": "internal"})).await;
    assert_eq!((&draft["state"], &draft["version"]), (&json!("draft"), &json!(0)));
    let path = format!("/policies/{}", id(&draft));
    let activate = format!("{path}/activate");
    app.call("POST", &activate, json!({})).await.is(409);
    app.call("PATCH", &path, json!({"state": "active"})).await.is(400);
    let refused = app.call("PATCH", &path, json!({"cedar": "forbid("})).await.is(400);
    assert!(refused.body.to_string().contains("line 1"), "{:#}", refused.body);
    let policy = app.call("PATCH", &path, json!({"cedar": FORBID})).await.is(200).body;
    assert_eq!(
        (&policy["policy"]["version"], &policy["policy"]["state"]),
        (&json!(1), &json!("draft"))
    );
    app.call("PATCH", &path, json!({"state": "active"})).await.is(409);
    let active = app.call("POST", &activate, json!({})).await.is(200).body;
    assert_eq!(active["policy"]["state"], "active");
    let waiting = app.call("PATCH", &path, json!({"cedar": OTHER})).await.is(200).body;
    let policy = &waiting["policy"];
    assert_eq!((&policy["cedar"], &policy["draft_cedar"]), (&json!(FORBID), &json!(OTHER)));
    assert_eq!((&policy["version"], &policy["draft_version"]), (&json!(1), &json!(2)));
    let active = app.call("POST", &activate, json!({})).await.is(200).body;
    let policy = &active["policy"];
    assert_eq!((&policy["cedar"], &policy["draft_cedar"]), (&json!(OTHER), &Value::Null));
    let back = app.call("POST", &activate, json!({"version": 1})).await.is(200).body;
    assert_eq!(back["policy"]["cedar"], FORBID);
    app.call("POST", &activate, json!({"version": 9})).await.is(400);
    let versions = app.get(&format!("{path}/versions")).await.is(200).body;
    assert_eq!(versions["versions"].as_array().unwrap().len(), 2);
    // A new text has a number of its own, although an older one is in force again.
    let next =
        app.call("PATCH", &path, json!({"cedar": FORBID.replace("forbid", " forbid")})).await;
    assert_eq!(next.is(200).body["policy"]["draft_version"], 3);
    app.call("PATCH", &path, json!({"cedar": null})).await.is(400);
    app.call("PATCH", &path, json!({"state": "retired"})).await.is(200);
    app.call("POST", &activate, json!({})).await.is(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_checked_without_being_stored() {
    let app = App::start().await;
    let good = json!({"cedar": FORBID, "target_class": "action:payment.*"});
    let answer = app.call("POST", "/policies:validate", good).await.is(200).body;
    assert_eq!(answer, json!({"ok": true, "valid": true, "problems": [], "warnings": []}));
    let bad = json!({"cedar": "permit(", "target_class": "moon"});
    let answer = app.call("POST", "/policies:validate", bad).await.is(200).body;
    assert_eq!(
        (&answer["valid"], answer["problems"].as_array().unwrap().len()),
        (&json!(false), 2)
    );
    app.call("POST", "/policies:validate", json!({})).await.is(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_rules_is_active_at_once() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"tenant_id": tenant, "regime": "internal", "cedar": FORBID});
    let made = app.make("/policies", body).await;
    assert_eq!((&made["state"], &made["version"]), (&json!("active"), &json!(1)));
    let target = |word: &str| json!({"policy_id": id(&made), "target_class": word});
    let row = app.make("/relationships/applies-to", target("effect_class:financial")).await;
    app.call("POST", "/relationships/applies-to", target("effect_class:moon")).await.is(400);
    app.call("POST", "/relationships/applies-to", target("effect_class:financial")).await.is(409);
    let path = format!("/relationships/applies-to/{}", id(&row));
    assert_eq!(app.get(&path).await.is(200).body["applies_to"], row);
    app.call("DELETE", &path, Value::Null).await.is(200);
    app.get(&path).await.is(404);
}
