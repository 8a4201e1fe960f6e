//! Secrets and headers: shown once or never, stored encrypted, rotated, rewrapped.

use authority_crypto::KeyRing;
use authority_keys::{EndpointColumn, Keys};
use authority_model::schema::webhook_endpoints;
use authority_process::clock::Clock;
use authority_webhook::signing::Secret;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::{ADMINS, OWNERS, World, id, made, made_at};
use crate::support::{Answered, Plain, nothing, only};

const MARKER: &str = "hunter2-of-the-marker";

/// Returns the decrypted value of a column; `None` for NULL.
async fn opened(world: &World, id: &str, column: EndpointColumn) -> Option<Vec<u8>> {
    let row = webhook_endpoints::table.find(id);
    let mut db = world.db().await;
    let sealed: Option<Vec<u8>> = match column {
        EndpointColumn::Secret => row.select(webhook_endpoints::secret).first(&mut db).await,
        EndpointColumn::PreviousSecret => {
            row.select(webhook_endpoints::previous_secret).first(&mut db).await
        }
        EndpointColumn::Headers => {
            row.select(webhook_endpoints::sealed_headers).first(&mut db).await
        }
    }
    .unwrap();
    sealed.map(|sealed| world.app.app.keys.open_endpoint(id, column, &sealed).unwrap())
}

/// Returns the rows of every table as text, with bytes in hex.
async fn whole_database(world: &World) -> String {
    let sql = "SELECT string_agg(query_to_xml(format('SELECT * FROM %I', relname), true, false, '')::text, '')
               FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')";
    world.value(sql).await.unwrap()
}

fn forms(secret: &str) -> [String; 3] {
    let bytes = Secret::parse(secret).unwrap();
    let base64 = secret.trim_start_matches("whsec_").to_owned();
    [secret.to_owned(), base64, hex::encode(bytes.as_bytes())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_and_header_values_are_shown_nowhere_again() {
    let world = World::start().await;
    let headers =
        json!({"headers": {"Authorization": format!("Bearer {MARKER}"), "x-env": "prod"}});
    let (made, secret) = made_at(&world.admin, ADMINS, headers).await;
    let id = id(&made);
    assert_eq!(made["headers"], json!({"authorization": "***", "x-env": "***"}));
    let kept = opened(&world, &id, EndpointColumn::Secret).await.unwrap();
    assert_eq!(kept, Secret::parse(&secret).unwrap().as_bytes());
    let kept = opened(&world, &id, EndpointColumn::Headers).await.unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["authorization"], format!("Bearer {MARKER}"));
    // The ciphertext is bound to its row and column.
    let sealed: Option<Vec<u8>> = webhook_endpoints::table
        .find(&id)
        .select(webhook_endpoints::secret)
        .first(&mut world.db().await)
        .await
        .unwrap();
    let (keys, sealed) = (&world.app.app.keys, sealed.unwrap());
    assert!(keys.open_endpoint(&id, EndpointColumn::PreviousSecret, &sealed).is_err());
    assert!(keys.open_endpoint("svc:endpoint:0", EndpointColumn::Secret, &sealed).is_err());

    let path = format!("{ADMINS}/{id}");
    let (status, patched) = world.admin.patch(&path, json!({"headers": {"x-token": MARKER}})).await;
    assert_eq!((status, &patched["webhook_endpoint"]["headers"]), (200, &only("x-token", "***")));
    let history = format!("/api/v1/app/entities/{id}/history");
    let mut shown = String::new();
    for path in [&path, ADMINS, &history, &format!("{history}:export")] {
        let (status, text) = world.admin.text("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {text}");
        shown += &text;
    }
    for path in [format!("{OWNERS}/{id}"), format!("/api/v1/entities/{id}/history")] {
        let (status, text) = world.app.owner().text("GET", &path, None).await;
        assert_eq!(status, 200, "{path}: {text}");
        shown += &text;
    }
    assert!(shown.contains("x-token") && shown.contains("hooks.example.com"), "{shown}");
    shown += &whole_database(&world).await;
    for text in forms(&secret).iter().map(String::as_str).chain([MARKER, &hex::encode(MARKER)]) {
        assert!(!shown.contains(text), "{text}");
    }
    // Cleared headers are deleted.
    assert_eq!(world.admin.patch(&path, only("headers", Value::Null)).await.0, 200);
    assert_eq!(opened(&world, &id, EndpointColumn::Headers).await, None);
    assert_eq!(world.column(&id, "headers").await.unwrap(), "{}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotency_key_repeats_the_secret_once() {
    let world = World::start().await;
    let repeat = async |path: &str, body: Value| {
        let send = async || {
            world.admin.call("POST", path, Some(body.clone()), &[("idempotency-key", "k")]).await
        };
        let first = send().await;
        assert!(first.1["secret"].is_string(), "{:#}", first.1);
        assert_eq!(send().await, first);
        let (status, erased) = send().await;
        assert_eq!((status, erased["error"].text()), (409, "idempotency_answer_erased"));
        first.1
    };
    let made = repeat(ADMINS, super::body(nothing())).await;
    assert_eq!(world.value("SELECT count(*) FROM webhook_endpoints").await.unwrap(), "1");
    let path = format!("{ADMINS}/{}:rotate-secret", id(&made["webhook_endpoint"]));
    let rotated = repeat(&path, nothing()).await;
    assert_ne!(rotated["secret"], made["secret"]);
}

/// Tests the secrets of endpoints and of API keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_not_repeated_once_its_record_has_ended() {
    let world = World::start().await;
    let send = async |path: &str, body: &Value, key: &str| {
        let keyed = [("idempotency-key", key)];
        world.admin.call("POST", path, Some(body.clone()), &keyed).await
    };
    let keys = "/api/v1/app/api-keys";
    let label = json!({"label": "x", "scopes": ["runtime:read"]});
    for (base, body, member, rotate) in [
        (ADMINS, super::body(nothing()), "webhook_endpoint", ":rotate-secret"),
        (keys, label, "api_key", "/rotate"),
    ] {
        let made = send(base, &body, "make").await.assert_status(201);
        let path = format!("{base}/{}", id(&made[member]));
        let rotate = format!("{path}{rotate}");
        send(&rotate, &nothing(), &format!("rotate {base}")).await.assert_status(200);
        assert_eq!(world.admin.call("DELETE", &path, None, &[]).await.0, 200);
        for (status, again) in [
            send(base, &body, "make").await,
            send(&rotate, &nothing(), &format!("rotate {base}")).await,
            send(base, &body, "make").await,
        ] {
            let erased = json!("idempotency_answer_erased");
            assert_eq!((status, &again["error"]), (409, &erased), "{again:#}");
            assert!(again["secret"].is_null());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_keeps_one_predecessor_for_the_overlap() {
    let world = World::start().await;
    let (made, first) = made_at(&world.admin, ADMINS, nothing()).await;
    let id = id(&made);
    let path = format!("{ADMINS}/{id}:rotate-secret");
    let rotate = async |body: Value| {
        let answer = world.admin.post(&path, body).await.assert_status(200);
        let until = answer["webhook_endpoint"]["previous_until"].as_str().map(str::to_owned);
        (answer["secret"].as_str().unwrap().to_owned(), until)
    };
    let kept = async |column| {
        let bytes = opened(&world, &id, column).await?;
        Some(Secret::new(bytes.try_into().unwrap()).reveal())
    };
    let (second, until) = rotate(nothing()).await;
    let until: DateTime<Utc> = until.unwrap().parse().unwrap();
    let left = until - Clock::default().now();
    assert!(left <= TimeDelta::days(1) && left > TimeDelta::hours(23), "{left}");
    assert_eq!(kept(EndpointColumn::Secret).await, Some(second.clone()));
    assert_eq!(kept(EndpointColumn::PreviousSecret).await, Some(first));
    let (third, _) = rotate(only("overlap_seconds", 60)).await;
    assert_eq!(kept(EndpointColumn::Secret).await, Some(third));
    assert_eq!(kept(EndpointColumn::PreviousSecret).await, Some(second));
    let (_, until) = rotate(only("overlap_seconds", 0)).await;
    assert_eq!((until, kept(EndpointColumn::PreviousSecret).await), (None, None));
    let (status, answer) = world.admin.post(&path, only("overlap_seconds", 86_401)).await;
    assert_eq!((status, super::fields(&answer)), (400, vec!["overlap_seconds"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_ring_takes_over() {
    let world = World::start().await;
    let (made, secret) = made_at(&world.admin, ADMINS, json!({"headers": {"x-a": "b"}})).await;
    let id = id(&made);
    let versions = || async {
        let sql = format!("SELECT count(*) FROM record_versions WHERE entity_id = '{id}'");
        world.value(&sql).await
    };
    let before = versions().await;
    let (store, new) = (world.app.database.store(), KeyRing::generate().unwrap());
    let ring = async |text: &str| {
        let ring = KeyRing::parse(text).unwrap();
        Keys::start(store.clone(), ring, Clock::default(), true).await.unwrap()
    };
    let both = ring(&format!("{new}{}", world.app.ring())).await;
    assert!(both.rewrap().await.unwrap() > 0);
    assert_eq!(both.rewrap().await.unwrap(), 0);
    let sealed: Option<Vec<u8>> = webhook_endpoints::table
        .find(&id)
        .select(webhook_endpoints::secret)
        .first(&mut world.db().await)
        .await
        .unwrap();
    let alone = ring(&new).await;
    let kept = alone.open_endpoint(&id, EndpointColumn::Secret, &sealed.unwrap()).unwrap();
    assert_eq!(kept, Secret::parse(&secret).unwrap().as_bytes());
    assert_eq!(versions().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_erases_them_and_keeps_the_record() {
    let world = World::start().await;
    let id = made(&world.admin, json!({"headers": {"x-a": "b"}})).await;
    let path = format!("{ADMINS}/{id}");
    assert_eq!(world.admin.post(&format!("{path}:rotate-secret"), nothing()).await.0, 200);
    world
        .run(&format!(
            "INSERT INTO webhook_deliveries (id, tenant_id, endpoint_id, event_id, event_type, sequence, state)
             SELECT 'svc:delivery:00' || n, 'svc:tenant:acme', '{id}', 'svc:event:' || n, 'svc.x', n, s
             FROM (VALUES (1, 'open'), (2, 'delivered'), (3, 'dead')) AS made (n, s)"
        ))
        .await;
    let (status, deleted) = world.admin.call("DELETE", &path, None, &[]).await;
    assert_eq!((status, &deleted["id"]), (200, &json!(id)));
    let states = "SELECT string_agg(state, ',' ORDER BY id) FROM webhook_deliveries";
    assert_eq!(world.value(states).await.unwrap(), "cancelled,delivered,dead");
    let erased = "num_nonnulls(secret, previous_secret, sealed_headers, previous_until)";
    assert_eq!(world.column(&id, erased).await.unwrap(), "0");
    for (method, path, body) in [
        ("GET", path.clone(), None),
        ("PATCH", path.clone(), Some(only("description", "x"))),
        ("DELETE", path.clone(), None),
        ("POST", format!("{path}:rotate-secret"), Some(nothing())),
        ("POST", format!("{path}:enable"), Some(nothing())),
    ] {
        assert_eq!(world.admin.call(method, &path, body, &[]).await.0, 404, "{method} {path}");
    }
    let (status, shown) = world.admin.get(&format!("{path}?deleted=true")).await;
    let shown = &shown["webhook_endpoint"];
    assert_eq!((status, shown["state"].text(), &shown["headers"]), (200, "deleted", &nothing()));
    assert_eq!(world.admin.get(ADMINS).await.1["webhook_endpoints"], json!([]));
    let (_, listed) = world.admin.get(&format!("{ADMINS}?deleted=true")).await;
    assert_eq!(listed["webhook_endpoints"][0]["id"], json!(id));
}
