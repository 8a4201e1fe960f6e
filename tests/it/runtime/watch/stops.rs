//! A stop condition ends the stream that watches it, and is named in the last event.

use authority_process::clock::Clock;
use std::time::{Duration, Instant};

use authority_graph as graph;
use serde_json::{Value, json};

use super::{AGENT, Lines, TENANT, asking, decided, demo, nobody_watches, permitted};
use crate::support::{
    Answered, Client, EVALUATE, Members, Plain, TestApp, Wishes, new_api_key, new_stop, new_tenant,
    nothing, only,
};

/// A change that stops a permission: the call, the call that undoes it, and the stop condition.
struct Stop {
    does: (&'static str, String, Value),
    /// The call that undoes the stop. `{id}` is replaced by the id of the created record.
    undoes: (&'static str, String, Value),
    condition: &'static str,
    reason: &'static str,
}

fn stops(delegation: &str, delegator: &str) -> Vec<Stop> {
    let state = |path: &str, state: &str| ("PATCH", path.to_owned(), only("state", state));
    let suspended = |path: &str, condition, reason| Stop {
        does: state(path, "suspended"),
        undoes: state(path, "active"),
        condition,
        reason,
    };
    let made = |path: &str, mut body: Value, undo: &str, condition, reason| {
        body["tenant_id"] = TENANT.into();
        body["reason"] = "looks wrong".into();
        Stop {
            does: ("POST", path.to_owned(), body),
            undoes: ("POST", format!("{path}/{{id}}/{undo}"), nothing()),
            condition,
            reason,
        }
    };
    let act = |verb: &str| ("POST", format!("/api/v1/delegations/{delegation}/{verb}"), nothing());
    let signal = only("actor_id", AGENT);
    let (set_aside, all) = (only("delegation_id", delegation), only("action", "payment.*"));
    let quarantined = "capability.quarantined";
    vec![
        made("/api/v1/stop-signals", signal, "lift", "actor.stop_signal", "actor_stopped"),
        made("/api/v1/quarantines", set_aside, "release", quarantined, "capability_quarantined"),
        made("/api/v1/quarantines", all, "release", quarantined, "capability_quarantined"),
        Stop {
            does: act("suspend"),
            undoes: act("reinstate"),
            condition: "delegation.revoked",
            reason: "delegation_suspended",
        },
        suspended(&format!("/api/v1/principals/{AGENT}"), "actor.suspended", "subject_suspended"),
        suspended(
            &format!("/api/v1/principals/{delegator}"),
            "delegation.revoked",
            "delegator_inactive",
        ),
        suspended("/api/v1/tenants/acme", "tenant.suspended", "tenant_inactive"),
        Stop {
            does: act("revoke"),
            undoes: ("GET", "/health".to_owned(), Value::Null),
            condition: "delegation.revoked",
            reason: "delegation_revoked",
        },
    ]
}

async fn does(owner: &Client, (verb, path, body): &(&str, String, Value), id: &str) -> Value {
    let path = path.replace("{id}", id);
    let body = Some(body).filter(|body| !body.is_null()).cloned();
    let (status, answer) = owner.call(verb, &path, body, &[]).await;
    assert!(status == 200 || status == 201, "{path}: {status} {answer:#}");
    answer
}

/// The end of the stream and the refusal to repeat the allow come from the same check.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_condition_ends_the_stream_and_forbids_the_repeat() {
    let (app, client, delegation) = demo().await;
    let owner = app.owner();
    let (_, found) = owner.get_delegation(&delegation).await;
    let delegator = found["delegation"]["delegator_id"].as_str().unwrap();
    for (place, stop) in stops(&delegation, delegator).into_iter().enumerate() {
        let key = format!("pay-{place}");
        let headers = [("idempotency-key", key.as_str())];
        let ask = || Some(asking(10.0, "DE"));
        let (_, allowed) = owner.call("POST", EVALUATE, ask(), &headers).await;
        assert_eq!(allowed["decision"], "allow", "{allowed:#}");
        let id = allowed["decision_id"].as_str().unwrap();
        let (mut lines, first) = Lines::stops(&client, id).await;
        let made = does(&owner, &stop.does, "").await;
        let event = lines.last().await;
        let told = (&event["kind"], &event["stop_condition"], &event["reason_code"]);
        let wanted = (&json!("stopped"), &json!(stop.condition), &json!(stop.reason));
        assert_eq!(told, wanted, "{event:#}");
        let revision = |event: &Value| event["authority_revision"].as_u64().unwrap();
        assert!(revision(&event) > revision(&first), "{first:#} {event:#}");
        // A watcher that connects later gets the condition at once.
        let path = format!("/v1/decisions/{id}:watch-stop-conditions");
        let mut late = Lines::open(&owner, &path).await;
        assert_eq!(late.last().await["reason_code"], stop.reason);
        let (status, again) = owner.call("POST", EVALUATE, ask(), &headers).await;
        assert_eq!((status, again["error"].text()), (409, "decision_stopped"), "{again:#}");
        assert!(again["message"].as_str().unwrap().contains(stop.reason), "{again:#}");
        let made = made.as_object().unwrap().values().find_map(|record| record["id"].as_str());
        does(&owner, &stop.undoes, made.unwrap_or_default()).await;
    }
    nobody_watches(&app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unrelated_changes_do_not_end_it() {
    let heartbeat = Duration::from_millis(200);
    let app = TestApp::wished(Wishes { heartbeat, ..Wishes::default() }).await;
    let client = app.client(&app.demo().await.api_key);
    let (mut lines, first) = Lines::stops(&client, &permitted(&client).await).await;
    let owner = app.owner();
    let signal = new_stop("svc:agent:acme:support-bot", "it talks too much");
    assert_eq!(owner.create_stop_signal(signal).await.0, 201);
    // The delegation becomes narrower, but still covers the permitted request.
    let (_, found) = owner.list_delegations(&format!("tenant_id={TENANT}")).await;
    let id = found["delegations"][0]["id"].as_str().unwrap();
    owner.narrow_delegation(id, only("max_amount", "10")).await.assert_status(200);
    let mut seen = first["authority_revision"].as_u64().unwrap();
    for _ in 0..3 {
        let event = lines.next().await.unwrap();
        assert_eq!(event["kind"], "heartbeat", "{event:#}");
        let revision = event["authority_revision"].as_u64().unwrap();
        assert!(revision >= seen);
        seen = revision;
    }
    assert!(seen > first["authority_revision"].as_u64().unwrap());
    drop(lines);
    nobody_watches(&app).await;
}

/// A delegation expires without a write. The stream wakes on its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expiry_ends_it_on_time() {
    let (app, client, _) = demo().await;
    let (_, found) = app.owner().list_delegations(&format!("tenant_id={TENANT}")).await;
    let end = Clock::default().now() + chrono::TimeDelta::seconds(3);
    let body = json!({"tenant_id": TENANT, "delegate_id": AGENT, "actions": ["payment.*"],
        "delegator_id": found["delegations"][0]["delegator_id"], "expires_at": end.to_rfc3339()});
    let made = app.owner().create_delegation(body).await.assert_status(201);
    let ask = asking(10.0, "DE").with("delegation_id", &made["delegation"]["id"]);
    let id = decided(&client, ask, "allow").await;
    let (mut lines, _) = Lines::stops(&client, &id).await;
    let event = lines.last().await;
    assert_eq!(event["stop_condition"], "delegation.revoked");
    assert_eq!(event["reason_code"], "delegation_expired");
    let late = (Clock::default().now() - end).num_milliseconds();
    assert!((0..1000).contains(&late), "{late} ms after the end");
}

/// A node that no longer receives changes can't confirm permissions: it ends the streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_falls_behind_ends_it() {
    let (app, client, _) = demo().await;
    let id = permitted(&client).await;
    let (max_staleness, delay) = (Duration::from_secs(5), Duration::from_secs(600));
    let deaf = graph::Settings { max_staleness, delay, ..Default::default() };
    let deaf = app.beside(Wishes { graph: deaf, ..Wishes::default() }).await;
    let begun = Instant::now();
    let (mut lines, _) = Lines::stops(&deaf.client(&client.token), &id).await;
    let event = lines.last().await;
    let told = (&event["kind"], &event["stop_condition"], &event["reason_code"]);
    assert_eq!(told, (&json!("stopped"), &json!("authority.unavailable"), &Value::Null));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_permission_is_watched_and_only_by_those_who_may_read_it() {
    let (app, client, _) = demo().await;
    for (ask, decision) in
        [(asking(25_000.0, "DE"), "require_approval"), (asking(10.0, "US"), "deny")]
    {
        let id = decided(&client, ask, decision).await;
        let (status, refused) =
            client.get(&format!("/v1/decisions/{id}:watch-stop-conditions")).await;
        assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
        assert!(refused["message"].as_str().unwrap().contains(decision), "{refused:#}");
    }
    let id = permitted(&client).await;
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let stranger = app.client(&app.api_key("svc:tenant:other", &["runtime:read"]).await);
    let blind = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    for verb in ["watch", "watch-stop-conditions"] {
        let path = format!("/v1/decisions/{id}:{verb}");
        assert_eq!(stranger.get(&path).await.0, 404, "{verb}");
        assert_eq!(blind.get(&path).await.0, 403, "{verb}");
        assert_eq!(client.get_decision(&format!("svc:decision:0:{verb}")).await.0, 404);
        for reader in [app.owner(), app.person(TENANT, "viewer", "vic@example.org")] {
            let _ = Lines::open(&reader, &path).await.next().await.unwrap();
        }
    }
}

/// The stream of a key ends when the key is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_taken_back_ends_it() {
    let (app, client, _) = demo().await;
    let held = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    let id = permitted(&client).await;
    let (_, made) = app.owner().create_api_key(new_api_key("watcher", &["runtime:read"])).await;
    let watcher = app.client(made["secret"].as_str().unwrap());
    let (mut stops, _) = Lines::stops(&watcher, &id).await;
    let mut updates = Lines::open(&watcher, &format!("/v1/decisions/{held}:watch")).await;
    assert_eq!(updates.next().await.unwrap()["approval_state"], "pending");
    let (status, gone) = app.owner().revoke_api_key(made["api_key"]["id"].as_str().unwrap()).await;
    assert!(status == 200 || status == 204, "{gone:#}");
    for lines in [&mut stops, &mut updates] {
        assert_eq!(lines.last().await["error"], "unauthenticated");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_with_the_client_and_with_the_service() {
    let (app, client, _) = demo().await;
    let id = permitted(&client).await;
    let (lines, _) = Lines::stops(&client, &id).await;
    assert_eq!(app.app.graph.watchers(&TENANT.parse().unwrap()), 1);
    drop(lines);
    nobody_watches(&app).await;
    let (mut lines, _) = Lines::stops(&client, &id).await;
    let begun = Instant::now();
    drop(app);
    assert_eq!(lines.last().await["error"], "unavailable");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}
