//! Versions that only observe: their start and end, who may change them, and their number.

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{nothing, only};

const FORBID: &str = r#"@id("a") forbid(principal, action, resource);"#;
const OTHER: &str = r#"@id("b") forbid(principal, action == Svc::Action::"other", resource);"#;

async fn draft(app: &App, tenant: &str) -> String {
    let body =
        json!({"tenant_id": tenant, "regime": "internal", "cedar": FORBID, "state": "draft"});
    format!("/policies/{}", id(&app.make("/policies", body).await))
}

async fn observe(app: &App, path: &str, body: Value) -> Value {
    let answer = app.call("POST", &format!("{path}/observe"), body).await.is(200).body;
    answer["policy"].clone()
}

async fn policy(app: &App, path: &str) -> Value {
    app.get(path).await.is(200).body["policy"].clone()
}

#[derive(QueryableByName)]
struct Revision {
    #[diesel(sql_type = BigInt)]
    revision: i64,
}

async fn revision(app: &App, tenant: &str) -> i64 {
    let sql = format!("SELECT revision FROM tenant_revisions WHERE tenant_id = '{tenant}'");
    let mut database = app.database.owner().await;
    let found: Revision = diesel::sql_query(sql).get_result(&mut database).await.unwrap();
    found.revision
}

#[track_caller]
fn observes(policy: &Value, version: i64, cedar: &str) {
    let found = (&policy["observing_version"], &policy["observing_cedar"]);
    assert_eq!(found, (&json!(version), &json!(cedar)), "{policy:#}");
    assert_eq!(policy["observation"]["since"], policy["observing_since"], "{policy:#}");
    assert_eq!(policy["observation"]["ended_at"], Value::Null, "{policy:#}");
    for count in ["would_allow", "would_require_approval", "would_deny", "would_change"] {
        assert_eq!(policy["observation"][count], 0, "{count}");
    }
}

#[track_caller]
fn observes_nothing(policy: &Value) {
    for member in ["observing_version", "observing_cedar", "observing_since", "observation"] {
        assert_eq!(policy[member], Value::Null, "{member}: {policy:#}");
    }
}

/// Whether the last observation of a version has ended; `None` if there was none.
async fn has_ended(app: &App, path: &str, version: usize) -> Option<bool> {
    let found = app.get(&format!("{path}/versions")).await.is(200).body;
    let observation = &found["versions"][version - 1]["observation"];
    observation.is_object().then(|| observation["ended_at"].is_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_observes_until_its_end_or_activation_or_the_end_of_its_policy() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let path = draft(&app, &tenant).await;
    observes_nothing(&policy(&app, &path).await);
    app.call("POST", &format!("{path}/unobserve"), nothing()).await.is(409);
    // A draft's text may observe. The draft stays a draft.
    let observing = observe(&app, &path, nothing()).await;
    observes(&observing, 1, FORBID);
    assert_eq!(observing["state"], "draft");
    // A new text does not replace the text that observes.
    app.call("PATCH", &path, only("cedar", OTHER)).await.is(200);
    observes(&policy(&app, &path).await, 1, FORBID);
    // The activation of another version does not end it.
    let active = app.call("POST", &format!("{path}/activate"), only("version", 2)).await;
    observes(&active.is(200).body["policy"], 1, FORBID);
    assert_eq!(has_ended(&app, &path, 1).await, Some(false));
    assert_eq!(has_ended(&app, &path, 2).await, None);
    let refused = app.call("POST", &format!("{path}/observe"), only("version", 2)).await.is(409);
    assert!(refused.body.to_string().contains("is in force"), "{:#}", refused.body);
    app.call("POST", &format!("{path}/observe"), only("version", 9)).await.is(400);
    let ended = app.call("POST", &format!("{path}/unobserve"), nothing()).await.is(200).body;
    observes_nothing(&ended["policy"]);
    assert_eq!(ended["policy"]["state"], "active");
    assert_eq!(has_ended(&app, &path, 1).await, Some(true));
    // Its own activation ends an observation.
    observe(&app, &path, only("version", 1)).await;
    assert_eq!(has_ended(&app, &path, 1).await, Some(false));
    let active = app.call("POST", &format!("{path}/activate"), only("version", 1)).await;
    observes_nothing(&active.is(200).body["policy"]);
    assert_eq!(has_ended(&app, &path, 1).await, Some(true));
    // Retiring the policy ends it as well, and a retired policy does not observe.
    observe(&app, &path, only("version", 2)).await;
    let retired = app.call("PATCH", &path, only("state", "retired")).await.is(200).body;
    observes_nothing(&retired["policy"]);
    assert_eq!(has_ended(&app, &path, 2).await, Some(true));
    app.call("POST", &format!("{path}/observe"), only("version", 2)).await.is(409);
    // The members are written by these operations only.
    let other = draft(&app, &tenant).await;
    app.call("PATCH", &other, only("observing_version", 1)).await.is(400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_and_an_end_are_revisions_of_the_tenants_authority() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let path = draft(&app, &tenant).await;
    let before = revision(&app, &tenant).await;
    observe(&app, &path, nothing()).await;
    let observing = revision(&app, &tenant).await;
    app.call("POST", &format!("{path}/unobserve"), nothing()).await.is(200);
    let after = revision(&app, &tenant).await;
    assert!(before < observing && observing < after, "{before} {observing} {after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_policies_of_a_tenant_observe_at_most() {
    let app = App::start().await;
    let (tenant, other) = (app.tenant("acme").await, app.tenant("other").await);
    let mut paths = Vec::new();
    for _ in 0..4 {
        paths.push(draft(&app, &tenant).await);
    }
    for path in &paths[..3] {
        observe(&app, path, nothing()).await;
    }
    let refused = app.call("POST", &format!("{}/observe", paths[3]), nothing()).await.is(409);
    assert!(refused.body.to_string().contains("end one of these"), "{:#}", refused.body);
    // Another version of an observing policy takes the place of its first one.
    app.call("PATCH", &paths[0], only("cedar", OTHER)).await.is(200);
    observes(&observe(&app, &paths[0], nothing()).await, 2, OTHER);
    assert_eq!(has_ended(&app, &paths[0], 1).await, Some(true));
    observe(&app, &draft(&app, &other).await, nothing()).await;
    app.call("POST", &format!("{}/unobserve", paths[1]), nothing()).await.is(200);
    observe(&app, &paths[3], nothing()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_could_not_be_activated_does_not_observe() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let empty = app.make("/policies", json!({"tenant_id": tenant, "regime": "internal"})).await;
    let observe = format!("/policies/{}/observe", id(&empty));
    app.call("POST", &observe, nothing()).await.is(409);
}
