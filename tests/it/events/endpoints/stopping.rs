//! An endpoint is paused when its creator loses access or its tenant is suspended. It can be
//! enabled again.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{ADMINS, ANN, KEYS, TENANT, World, bind, body, id, made, made_at};
use crate::support::{Answered, Client, Plain, TestApp, nothing, only};

const BOB: &str = "bob@acme.example";

impl World {
    async fn state(&self, id: &str) -> (String, Option<String>) {
        (self.column(id, "state").await.unwrap(), self.column(id, "state_reason").await)
    }

    async fn is_paused(&self, id: &str, reason: &str) -> bool {
        self.state(id).await == ("paused".to_owned(), Some(reason.to_owned()))
    }

    async fn is_active(&self, id: &str) -> bool {
        self.state(id).await == ("active".to_owned(), None)
    }
}

async fn enable(client: &Client, base: &str, id: &str, body: Value) -> (u16, Value) {
    client.post(&format!("{base}/{id}:enable"), body).await
}

/// Creates a human principal; returns its id.
async fn human(app: &TestApp, subject: Option<&str>, email: Option<&str>, state: &str) -> String {
    let body = json!({"tenant_id": TENANT, "principal_class": "human", "display_name": "Someone",
                      "external_subject": subject, "email": email, "state": state});
    let made = app.owner().create_principal(body).await.assert_status(201);
    id(&made["principal"])
}

async fn set(app: &TestApp, principal: &str, body: Value) {
    app.owner().update_principal(principal, body).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_pauses_with_the_revocation_of_its_key() {
    let world = World::start().await;
    let ((key_id, key), (_, other)) = (world.key().await, world.key().await);
    let (made, _) = made_at(&key, KEYS, nothing()).await;
    let (endpoint, unrelated) = (id(&made), id(&made_at(&other, KEYS, nothing()).await.0));
    // Rotating the secret leaves the key valid.
    assert_eq!(world.admin.rotate_api_key(&key_id).await.0, 200);
    assert!(world.is_active(&endpoint).await);
    assert_eq!(world.admin.revoke_api_key(&key_id).await.0, 200);
    assert!(world.is_paused(&endpoint, "key_revoked").await);
    assert!(world.is_active(&unrelated).await);

    let change = only("description", "still editable");
    assert_eq!(other.patch(&format!("{KEYS}/{endpoint}"), change).await.0, 200);
    let (status, answer) = enable(&other, KEYS, &endpoint, nothing()).await;
    assert_eq!((status, answer["error"].text()), (403, "forbidden"), "{answer:#}");
    let (status, answer) = enable(&world.admin, ADMINS, &endpoint, nothing()).await;
    let enabled = &answer["webhook_endpoint"];
    assert_eq!(
        (status, enabled["state"].text(), &enabled["state_reason"]),
        (200, "active", &Value::Null)
    );
    assert_eq!((&enabled["key_id"], enabled["adopted_by"].text()), (&Value::Null, ANN));
    assert_eq!(enabled["created_by"], json!(key_id));
    let (status, answer) = enable(&world.admin, ADMINS, &endpoint, nothing()).await;
    assert_eq!((status, answer["error"].text()), (409, "transition_not_allowed"));
    // The endpoint pauses when its new owner is suspended.
    human(&world.app, None, Some(ANN), "suspended").await;
    assert!(world.is_paused(&endpoint, "person_inactive").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_outlives_its_keys_expiry() {
    let world = World::start().await;
    let (key_id, key) = world.key().await;
    let endpoint = id(&made_at(&key, KEYS, nothing()).await.0);
    world
        .run(&format!(
            "UPDATE api_keys SET expires_at = now() - interval '1 day' WHERE id = '{key_id}'"
        ))
        .await;
    assert!(world.is_active(&endpoint).await);
}

/// The endpoint is written before the revocation of its key is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_makes_no_endpoint_while_it_is_revoked() {
    let world = World::start().await;
    let (key_id, key) = world.key().await;
    let mut revoking = world.db().await;
    let revoke = format!(
        "BEGIN; UPDATE api_keys SET status = 'revoked', revoked_at = now() WHERE id = '{key_id}'"
    );
    revoking.batch_execute(&revoke).await.unwrap();
    let attempt = tokio::spawn(async move { key.post(KEYS, body(nothing())).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!attempt.is_finished());
    revoking.batch_execute("COMMIT").await.unwrap();
    let (status, answer) = attempt.await.unwrap();
    assert_eq!(status, 401, "{answer:#}");
    assert_eq!(world.value("SELECT count(*) FROM webhook_endpoints").await.unwrap(), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_pauses_with_its_person() {
    let world = World::start().await;
    let app = &world.app;
    let bob = app.person(TENANT, "admin", BOB);
    let principal = human(app, None, Some("Bob@acme.example"), "active").await;
    let (endpoint, anns) = (made(&bob, nothing()).await, made(&world.admin, nothing()).await);
    set(app, &principal, only("notes", "a change without an effect on access")).await;
    assert!(world.is_active(&endpoint).await);
    set(app, &principal, only("state", "suspended")).await;
    assert!(world.is_paused(&endpoint, "person_inactive").await);
    assert!(world.is_active(&anns).await);
    // Reinstating the person does not resume their endpoints.
    set(app, &principal, only("state", "active")).await;
    assert!(world.is_paused(&endpoint, "person_inactive").await);
    assert_eq!(enable(&bob, ADMINS, &endpoint, nothing()).await.0, 200);
    assert_eq!(app.owner().delete_principal(&principal).await.0, 200);
    assert!(world.is_paused(&endpoint, "person_inactive").await);

    // A principal with the person's subject, unless deleted, has priority over principals with the
    // person's address.
    assert_eq!(enable(&world.admin, ADMINS, &endpoint, nothing()).await.0, 200);
    let subject = format!("dev|{ANN}");
    let live = human(app, Some(&subject), None, "active").await;
    human(app, None, Some(ANN), "suspended").await;
    assert!(world.is_active(&anns).await);
    set(app, &live, only("external_subject", Value::Null)).await;
    assert!(world.is_paused(&anns, "person_inactive").await);
    assert!(world.is_paused(&endpoint, "person_inactive").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_tenant_keeps_its_endpoints_and_a_deleted_one_loses_them() {
    let world = World::start().await;
    let endpoint = made(&world.admin, json!({"event_types": ["*"], "headers": {"x-a": "b"}})).await;
    world
        .run(&format!(
            "INSERT INTO webhook_deliveries (id, tenant_id, endpoint_id, event_id, event_type, sequence)
             VALUES ('svc:delivery:001', '{TENANT}', '{endpoint}', 'svc:event:1', 'svc.x', 1)"
        ))
        .await;
    let (owner, path) = (world.app.owner(), format!("/api/v1/tenants/{TENANT}"));
    assert_eq!(owner.patch(&path, only("state", "suspended")).await.0, 200);
    assert!(world.is_active(&endpoint).await);
    assert_eq!(world.admin.get(ADMINS).await.0, 403);
    assert_eq!(owner.call("DELETE", &path, None, &[]).await.0, 200);
    assert_eq!(world.column(&endpoint, "state").await.unwrap(), "deleted");
    let erased = "num_nonnulls(secret, previous_secret, sealed_headers) = 0 AND headers = '{}'";
    assert_eq!(world.column(&endpoint, erased).await.unwrap(), "true");
    let cancelled = "SELECT state FROM webhook_deliveries";
    assert_eq!(world.value(cancelled).await.unwrap(), "cancelled");
    assert_eq!(world.value("SELECT count(*) FROM event_demands").await.unwrap(), "0");
}

/// A key bound to principals may not see events of other principals, and a key without the scope
/// may see none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_pauses_when_its_key_is_narrowed() {
    let world = World::start().await;
    let principal = human(&world.app, None, Some(BOB), "active").await;
    for (narrowed, pauses) in [
        (only("label", "another name"), false),
        (only("scopes", ["webhooks:write", "runtime:read"]), false),
        (only("scopes", ["runtime:read"]), true),
        (json!({"scopes": ["runtime:read"], "principal_ids": [principal]}), true),
    ] {
        let (key_id, key) = world.key().await;
        let endpoint = id(&made_at(&key, KEYS, nothing()).await.0);
        world.admin.update_api_key(&key_id, narrowed.clone()).await.assert_status(200);
        assert_eq!(world.is_paused(&endpoint, "key_narrowed").await, pauses, "{narrowed}");
    }
    // The API does not bind such a key. The database pauses its endpoint regardless.
    let (key_id, key) = world.key().await;
    let endpoint = id(&made_at(&key, KEYS, nothing()).await.0);
    world.run(&bind(&key_id, &principal)).await;
    assert!(world.is_paused(&endpoint, "key_narrowed").await);
}

/// If a paused endpoint loses its key, the person who enables it again sees the loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_is_paused_says_that_it_lost_its_key() {
    let world = World::start().await;
    let (key_id, key) = world.key().await;
    let endpoint = id(&made_at(&key, KEYS, nothing()).await.0);
    let pause = format!("{KEYS}/{endpoint}:pause");
    key.post(&pause, only("reason", "maintenance")).await.assert_status(200);
    assert!(world.is_paused(&endpoint, "asked").await);
    let narrowed = only("scopes", ["runtime:read"]);
    assert_eq!(world.admin.update_api_key(&key_id, narrowed).await.0, 200);
    assert!(world.is_paused(&endpoint, "key_narrowed").await);
    assert_eq!(world.admin.revoke_api_key(&key_id).await.0, 200);
    assert!(world.is_paused(&endpoint, "key_narrowed").await, "the first loss remains");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_endpoint_goes_on_where_it_stopped_or_now() {
    let world = World::start().await;
    let endpoint = made(&world.admin, nothing()).await;
    let (_, key) = world.key().await;
    world
        .run(&format!(
            "INSERT INTO events (id, tenant_id, last_sequence, event_types, bodies)
             SELECT 'svc:event:01a2000000007000800000000000000' || n, '{TENANT}', n,
                    'svc.authority.revoked', '{{}}'
             FROM generate_series(1, 9) AS n;
             INSERT INTO event_heads (tenant_id, sequence) VALUES ('{TENANT}', 9)
             ON CONFLICT (tenant_id) DO UPDATE SET sequence = 9"
        ))
        .await;
    // The endpoint has reached the third event, and the delivery of that event is still open.
    let fail = format!(
        "UPDATE webhook_endpoints SET state = 'disabled', state_reason = 'gone' WHERE id = '{endpoint}';
         DELETE FROM webhook_deliveries;
         UPDATE webhook_cursors SET sequence = 3, failing_since = now(), waits_until = now() + interval '1 h',
             breaker = 'open', breaker_count = 2, breaker_until = now() + interval '1 hour' WHERE endpoint_id = '{endpoint}';
         INSERT INTO webhook_deliveries (id, tenant_id, endpoint_id, event_id, event_type, sequence)
         VALUES ('svc:delivery:001', '{TENANT}', '{endpoint}', 'svc:event:01a20000000070008000000000000003',
                 'svc.authority.revoked', 3)"
    );
    let position = format!(
        // Later events announce that the endpoint fails.
        "SELECT concat_ws(' ', least(c.sequence, 9), num_nonnulls(lost_from, lost_to), d.state,
                          (SELECT count(*) FROM webhook_deliveries WHERE sequence > 3))
         FROM webhook_cursors c JOIN webhook_deliveries d USING (endpoint_id)
         WHERE endpoint_id = '{endpoint}' AND d.sequence = 3"
    );
    for (from, expected) in [
        (nothing(), "9 0 open 6"),
        (only("from", "stopped"), "9 0 open 6"),
        (only("from", "now"), "9 0 cancelled 0"),
    ] {
        world.run(&fail).await;
        // A key may also enable an endpoint that failures have disabled.
        enable(&key, KEYS, &endpoint, from).await.assert_status(200);
        let mut found = None;
        for _ in 0..200 {
            found = world.value(&position).await;
            if found.as_deref() == Some(expected) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(found.as_deref(), Some(expected));
    }
    let fresh = format!(
        "SELECT concat_ws(' ', num_nonnulls(failing_since, waits_until, breaker_until), breaker, breaker_count)
         FROM webhook_cursors WHERE endpoint_id = '{endpoint}'"
    );
    assert_eq!(world.value(&fresh).await.unwrap(), "0 closed 0");
    world.run(&fail).await;
    let (status, answer) = enable(&key, KEYS, &endpoint, only("from", "yesterday")).await;
    assert_eq!((status, super::fields(&answer)), (400, vec!["from"]));
}
