//! The record of an endpoint: its defaults, its errors, its changes.

use serde_json::{Value, json};

use super::{ADMINS, World, fields, id, made, made_at};
use crate::support::{Answered, Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_has_the_defaults_of_what_is_left_out() {
    let world = World::start().await;
    let (made, secret) = made_at(&world.admin, ADMINS, nothing()).await;
    assert!(id(&made).starts_with("svc:endpoint:"), "{made:#}");
    assert_eq!(
        (made["state"].text(), &made["event_types"], &made["filter"]),
        ("active", &json!([]), &Value::Null)
    );
    assert_eq!(made["signing_suites"].texts(), ["standard-webhooks/v1", "rfc9421"]);
    let policy = &made["retry_policy"];
    let delays = json!([5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]);
    assert_eq!((policy["strategy"].text(), &policy["schedule_seconds"]), ("schedule", &delays));
    assert_eq!((&policy["jitter"], made["rate_limit_per_second"].number()), (&json!(0.2), 100));
    assert_eq!((&made["headers"], &made["created_by"]), (&nothing(), &json!(super::ANN)));
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    // A client can send back the values that it received.
    let path = format!("{ADMINS}/{}", id(&made));
    let again = json!({"retry_policy": policy, "event_types": [], "headers": {}});
    let (status, patched) = world.admin.patch(&path, again).await;
    assert_eq!((status, &patched["webhook_endpoint"]["retry_policy"]), (200, policy));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_named_at_once() {
    let world = World::start().await;
    let body = json!({
        "url": "https://user@hooks.example.com/",
        "event_types": ["svc.decison.denied"],
        "filter": "data.decision == ",
        "retry_policy": {"strategy": "exponential", "base_seconds": 5},
        "signing_suites": ["v1a"],
        "rate_limit_per_second": 1001,
        "headers": {"Host": "x"},
    });
    let answer = world.admin.post(ADMINS, body).await.assert_status(400);
    let mut named = fields(&answer);
    named.sort_unstable();
    let all = [
        "event_types",
        "filter",
        "headers.host",
        "rate_limit_per_second",
        "retry_policy.factor",
        "signing_suites[0]",
        "url",
    ];
    assert_eq!(named, all, "{answer:#}");
    assert!(
        answer.to_string().contains("matches no event type; did you mean `svc.decision.denied`")
    );
    for (why, body, field, problem) in [
        ("scheme", only("url", "ftp://example.com/"), "url", "must be an address"),
        ("port", only("url", "https://example.com:9000/"), "url", "has port 9000"),
        ("private", only("url", "https://10.0.0.1/"), "url", "not public"),
        ("fragment", only("url", "https://example.com/#a"), "url", "no fragment"),
        ("none", only("description", "x"), "url", "is required"),
        (
            "delays",
            json!({"retry_policy": {"schedule_seconds": [-1]}}),
            "retry_policy.schedule_seconds",
            "at least 1",
        ),
        (
            "long",
            json!({"retry_policy": {"schedule_seconds": [604_800]}}),
            "retry_policy.schedule_seconds",
            "7 days",
        ),
        (
            "mixed",
            json!({"retry_policy": {"base_seconds": 1}}),
            "retry_policy.base_seconds",
            "exponential",
        ),
        ("header", json!({"headers": {"x-a": 5}}), "headers.x-a", "must be a text"),
        ("mask", json!({"headers": {"x-a": "***"}}), "headers.x-a", "is a masked value"),
        ("state", only("state", "active"), "state", ""),
    ] {
        let mut whole = nothing();
        if why != "none" {
            whole["url"] = "https://example.com/".into();
        }
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let (status, answer) = world.admin.post(ADMINS, whole).await;
        assert_eq!((status, fields(&answer)), (400, vec![field]), "{why}: {answer:#}");
        assert!(answer.to_string().contains(problem), "{why}: {answer:#}");
    }
    // In development, receivers on the same machine are permitted.
    made(&world.admin, only("url", "http://127.0.0.1:4711/hook")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_is_checked_against_the_chosen_types() {
    let world = World::start().await;
    let try_filter = async |types: Value, filter: &str| {
        let body = super::body(json!({"event_types": types, "filter": filter}));
        let (status, answer) = world.admin.post(ADMINS, body).await;
        (status, answer["details"][0]["problem"].as_str().unwrap_or_default().to_owned())
    };
    let stopped = json!(["svc.actor.stopped"]);
    let wrong = "has(data.stop_signal_id) && data.actor_idd == \"x\"";
    let (status, problem) = try_filter(stopped.clone(), wrong).await;
    assert_eq!(status, 400);
    assert!(problem.contains("did you mean `data.actor_id`? (at offset 28)"), "{problem}");
    let (status, problem) = try_filter(stopped, "has(data.delegation_id)").await;
    assert_eq!(
        (status, problem.contains("no event of the chosen types")),
        (400, true),
        "{problem}"
    );
    assert_eq!(try_filter(json!(["svc.authority.*"]), "has(data.delegation_id)").await.0, 201);
    // A patch of event types or filter is checked together with the stored value of the other.
    let stopped = json!({"event_types": ["svc.actor.stopped"], "filter": "has(data.actor_id)"});
    let path = format!("{ADMINS}/{}", made(&world.admin, stopped).await);
    let narrowed = only("event_types", ["svc.authority.revoked"]);
    let (status, answer) = world.admin.patch(&path, narrowed).await;
    assert_eq!((status, fields(&answer)), (400, vec!["filter"]), "{answer:#}");
    let both = json!({"event_types": ["svc.authority.revoked"], "filter": null});
    assert_eq!(world.admin.patch(&path, both).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_keeps_its_origin() {
    let world = World::start().await;
    let path = format!("{ADMINS}/{}", made(&world.admin, nothing()).await);
    for url in [
        "https://evil.example.com/a",
        "http://hooks.example.com/a",
        "https://hooks.example.com:8443/a",
        "https://hooks.example.com.evil.example/a",
    ] {
        let (status, answer) = world.admin.patch(&path, only("url", url)).await;
        assert_eq!((status, fields(&answer)), (400, vec!["url"]), "{url}: {answer:#}");
        assert!(answer.to_string().contains("create another endpoint"), "{url}: {answer:#}");
    }
    let answer = world
        .admin
        .patch(&path, json!({"url": "HTTPS://Hooks.example.com:443/b?c=d"}))
        .await
        .assert_status(200);
    assert_eq!(answer["webhook_endpoint"]["url"], "https://hooks.example.com/b?c=d");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_starts_from_the_version_that_it_names() {
    let world = World::start().await;
    let path = format!("{ADMINS}/{}", made(&world.admin, nothing()).await);
    let other = [("if-match", "\"0\"")];
    let change = || Some(only("description", "x"));
    assert_eq!(world.admin.call("PATCH", &path, change(), &other).await.0, 412);
    assert_eq!(world.admin.call("DELETE", &path, None, &other).await.0, 412);
    let (status, patched) = world.admin.call("PATCH", &path, change(), &[]).await;
    assert_eq!((status, patched["webhook_endpoint"]["description"].text()), (200, "x"));
}
