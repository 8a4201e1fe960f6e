//! Policies and their versions.

use diesel::{
    QueryableByName,
    sql_types::{Nullable, Text},
};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{Plain, nothing, only};

const FORBID: &str = r#"@id("a") forbid(principal, action, resource)
       unless { context has amount && context.amount.lessThanOrEqual(decimal("5.0")) };"#;
const OTHER: &str = r#"@id("b") forbid(principal, action, resource);"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_text_waits_until_it_is_activated() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let draft = app.make("/policies", json!({"tenant_id": tenant, "regime": "internal"})).await;
    assert_eq!((draft["state"].text(), draft["version"].number()), ("draft", 0));
    let path = format!("/policies/{}", id(&draft));
    let activate = format!("{path}/activate");
    app.call("POST", &activate, nothing()).await.is(409);
    app.call("PATCH", &path, only("state", "active")).await.is(400);
    let refused = app.call("PATCH", &path, only("cedar", "forbid(")).await.is(400);
    assert!(refused.body.to_string().contains("line 1"), "{:#}", refused.body);
    let policy = app.call("PATCH", &path, only("cedar", FORBID)).await.is(200).body;
    assert_eq!(
        (policy["policy"]["version"].number(), policy["policy"]["state"].text()),
        (1, "draft")
    );
    app.call("PATCH", &path, only("state", "active")).await.is(409);
    let active = app.call("POST", &activate, nothing()).await.is(200).body;
    assert_eq!(active["policy"]["state"], "active");
    let waiting = app.call("PATCH", &path, only("cedar", OTHER)).await.is(200).body;
    let policy = &waiting["policy"];
    assert_eq!((policy["cedar"].text(), &policy["draft_cedar"]), (FORBID, &json!(OTHER)));
    assert_eq!((policy["version"].number(), policy["draft_version"].number()), (1, 2));
    let active = app.call("POST", &activate, nothing()).await.is(200).body;
    let policy = &active["policy"];
    assert_eq!((&policy["cedar"], &policy["draft_cedar"]), (&json!(OTHER), &Value::Null));
    let back = app.call("POST", &activate, only("version", 1)).await.is(200).body;
    assert_eq!(back["policy"]["cedar"], FORBID);
    app.call("POST", &activate, only("version", 9)).await.is(400);
    let versions = app.get(&format!("{path}/versions")).await.is(200).body;
    assert_eq!(versions["versions"].as_array().unwrap().len(), 2);
    // A new text gets a new version number, even while an older version is active.
    let next = app.call("PATCH", &path, only("cedar", FORBID.replace("forbid", " forbid"))).await;
    assert_eq!(next.is(200).body["policy"]["draft_version"], 3);
    app.call("PATCH", &path, only("cedar", Value::Null)).await.is(400);
    app.call("PATCH", &path, only("state", "retired")).await.is(200);
    app.call("POST", &activate, nothing()).await.is(409);
}

/// Returns for each version who activated it, the reason, and whether it was superseded.
fn activations(versions: &Value) -> Vec<(i64, Value, Value, bool)> {
    let activation = |version: &Value| {
        assert_eq!(version["activated_at"].is_null(), version["activated_by"].is_null());
        let number = version["version"].as_i64().unwrap();
        let member = |name: &str| version[name].clone();
        (
            number,
            member("activated_by"),
            member("activation_reason"),
            version["superseded_at"].is_string(),
        )
    };
    versions["versions"].as_array().unwrap().iter().map(activation).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_put_a_text_in_force_is_kept_with_it_and_in_the_history() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"tenant_id": tenant, "regime": "internal", "cedar": FORBID});
    // A policy that is created as active counts as activated by its creator.
    let made = app.make("/policies", body.clone()).await;
    let (by, none) = (made["created_by"].clone(), Value::Null);
    assert_eq!((&made["activated_by"], &made["activation_reason"]), (&by, &none));
    assert!(made["activated_at"].is_string(), "{made:#}");
    let path = format!("/policies/{}", id(&made));
    let (activate, versions) = (format!("{path}/activate"), format!("{path}/versions"));
    let found = app.get(&versions).await.is(200).body;
    assert_eq!(activations(&found), [(1, by.clone(), none.clone(), false)]);

    let patched = app.call("PATCH", &path, only("cedar", OTHER)).await.is(200).body;
    assert_eq!(patched["policy"]["activated_at"], made["activated_at"]);
    for bad in [json!(""), json!("x".repeat(2001)), json!(1)] {
        app.call("POST", &activate, only("reason", &bad)).await.is(400);
    }
    let why = "x".repeat(2000);
    let active = app.call("POST", &activate, only("reason", &why)).await.is(200).body;
    assert_eq!(active["policy"]["activation_reason"], why);
    assert_ne!(active["policy"]["activated_at"], made["activated_at"]);
    // An activation without a reason does not keep the reason of an earlier one.
    let again = app.call("POST", &activate, json!({"version": 1, "reason": null})).await.is(200);
    assert_eq!(again.body["policy"]["activation_reason"], none);
    let found = app.get(&versions).await.is(200).body;
    let expected = [(1, by.clone(), none.clone(), false), (2, by.clone(), json!(why), true)];
    assert_eq!(activations(&found), expected);
    assert_eq!(found["versions"][1]["superseded_at"], found["versions"][0]["activated_at"]);

    // The active text can be activated again with another reason.
    app.call("POST", &activate, json!({"version": 1, "reason": "Confirmed."})).await.is(200);
    let changed = app.call("PATCH", &path, only("description", "Payments.")).await.is(200).body;
    assert_eq!(changed["policy"]["activation_reason"], "Confirmed.");
    let found = app.get(&versions).await.is(200).body;
    assert_eq!(activations(&found)[0], (1, by.clone(), json!("Confirmed."), false));
    app.call("PATCH", &path, only("activation_reason", "Never.")).await.is(400);
    app.call("PATCH", &path, only("activated_by", "nobody")).await.is(400);

    let mut database = app.database.owner().await;
    let kept: Vec<Kept> = diesel::sql_query(format!(
        "SELECT actor, body ->> 'activated_by' AS by, body ->> 'activation_reason' AS reason
         FROM record_versions WHERE entity_id = '{}' AND body ->> 'state' = 'active'
         ORDER BY version",
        id(&made)
    ))
    .load(&mut database)
    .await
    .unwrap();
    assert!(kept.iter().all(|version| version.actor == version.by), "{kept:?}");
    let mut reasons: Vec<_> = kept.iter().map(|version| version.reason.as_deref()).collect();
    reasons.dedup();
    assert_eq!(reasons, [None, Some(why.as_str()), None, Some("Confirmed.")]);

    // A draft that was never active has no activation.
    let mut draft = body;
    draft["state"] = "draft".into();
    let draft = app.make("/policies", draft).await;
    assert_eq!(draft["activated_at"], none);
    let found = app.get(&format!("/policies/{}/versions", id(&draft))).await.is(200).body;
    assert_eq!(activations(&found), [(1, none.clone(), none, false)]);
}

#[derive(Debug, QueryableByName)]
struct Kept {
    #[diesel(sql_type = Text)]
    actor: String,
    #[diesel(sql_type = Text)]
    by: String,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
}

/// A statement that changes only the state and the version also activates a text.
#[tokio::test(flavor = "multi_thread")]
async fn an_activation_without_a_reason_is_noted() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"tenant_id": tenant, "regime": "internal", "cedar": FORBID});
    let made = app.make("/policies", body).await;
    let path = format!("/policies/{}", id(&made));
    let (activate, versions) = (format!("{path}/activate"), format!("{path}/versions"));
    app.call("POST", &activate, only("reason", "Mine.")).await.is(200);
    app.call("PATCH", &path, only("cedar", OTHER)).await.is(200);
    let mut database = app.database.owner().await;
    let beside = format!(
        "BEGIN; SET LOCAL authority.actor = 'ada@acme.example';
         UPDATE policies SET state = 'active', version = 2, cedar = draft_cedar, draft_version = NULL
         WHERE id = '{}'; COMMIT;",
        id(&made)
    );
    database.batch_execute(&beside).await.unwrap();
    let by = made["created_by"].clone();
    let noted = [(1, by, json!("Mine."), true), (2, json!("ada@acme.example"), Value::Null, false)];
    assert_eq!(activations(&app.get(&versions).await.is(200).body), noted);
    let found = app.get(&path).await.is(200).body;
    assert_eq!(found["policy"]["activation_reason"], Value::Null);
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
        (answer["valid"].as_bool(), answer["problems"].as_array().unwrap().len()),
        (Some(false), 2)
    );
    app.call("POST", "/policies:validate", nothing()).await.is(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_rules_is_active_at_once() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"tenant_id": tenant, "regime": "internal", "cedar": FORBID});
    let made = app.make("/policies", body).await;
    assert_eq!((made["state"].text(), made["version"].number()), ("active", 1));
    let target = |word: &str| json!({"policy_id": id(&made), "target_class": word});
    let row = app.make("/relationships/applies-to", target("effect_class:financial")).await;
    app.call("POST", "/relationships/applies-to", target("effect_class:moon")).await.is(400);
    app.call("POST", "/relationships/applies-to", target("effect_class:financial")).await.is(409);
    let path = format!("/relationships/applies-to/{}", id(&row));
    assert_eq!(app.get(&path).await.is(200).body["applies_to"], row);
    app.call("DELETE", &path, Value::Null).await.is(200);
    app.get(&path).await.is(404);
}
