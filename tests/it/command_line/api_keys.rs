//! `api-key create`, and the key that the demonstration gets.

use std::{fs, sync::Arc};

use agent_authority::app::demo;
use axum::Router;
use diesel::{
    QueryableByName,
    sql_types::{Array, Text},
};
use diesel_async::RunQueryDsl;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;

use super::reads::spawn;
use crate::support::{TestApp, nothing, only};

/// Returns the output of `api-key create --tenant acme` with these flags, on the database of `app`.
async fn create(app: &TestApp, flags: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let typed = format!("api-key create --tenant acme {flags} --data-dir");
    let args = typed.split_whitespace().map(str::to_owned);
    let args = args.chain([folder.path().display().to_string()]).collect();
    let environment = vec![
        ("DATABASE_URL", app.database.owner_url()),
        ("AGENT_AUTHORITY__KEYS__RING", app.ring().to_owned()),
    ];
    spawn(args, environment).await
}

/// Returns the principals to which a key is bound, read from the database. The service can't
/// answer, because the command has migrated the database as another user.
async fn bound(app: &TestApp, key: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Array<Text>)]
        principal_ids: Vec<String>,
    }
    let query = "SELECT principal_ids FROM api_keys WHERE starts_with($1, prefix || '_')";
    let found = diesel::sql_query(query).bind::<Text, _>(key);
    let row: Row = found.get_result(&mut app.database.owner().await).await.unwrap();
    row.principal_ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_be_bound_to_principals() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let bots = ["svc:agent:acme:invoice-bot", "svc:agent:acme:support-bot"];
    let flags = format!("--scope runtime:read --principal {} --principal {}", bots[0], bots[1]);
    let (code, key, told) = create(&app, &flags).await;
    assert_eq!(code, 0, "{told}");
    assert_eq!(bound(&app, &key).await, bots);

    // An error is a sentence that names the invalid flag.
    for (flags, start) in [
        ("--scope events:reed", "error: invalid_request: --scope"),
        ("--scope runtime:read --principal svc:agent:acme:nobody", "error: "),
        // If a script passes an empty variable, the key must not be valid for every principal.
        ("--scope runtime:read --principal=", "error: "),
    ] {
        let (code, printed, told) = create(&app, flags).await;
        assert_eq!((code, printed.as_str()), (1, ""), "{told}");
        assert!(told.starts_with(start) && !told.contains('{'), "{told}");
    }
    let (_, _, told) = create(&app, "--scope runtime:read --principal nobody").await;
    assert!(told.contains("--principal"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstrations_key_reads_events() {
    let app = TestApp::seeded().await;
    let old = app.demo().await;
    let (status, page) = app.client(&old.api_key).list_events("limit=1").await;
    assert_eq!((status, page["oldest"].as_i64()), (200, Some(1)), "{page:#}");

    // A stored key that an earlier version created is replaced. A valid key is kept.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let narrow = ["runtime:read", "runtime:write", "evidence:read", "evidence:write"];
    fs::write(&file, app.api_key("svc:tenant:acme", &narrow).await).unwrap();
    let token = app.app.service_token().unwrap();
    let seeded =
        async || demo::seed(&app.app.entry.router, &token, Some(&file)).await.unwrap().api_key;
    let first = seeded().await;
    let (status, _): (u16, Value) = app.client(&first).list_events("limit=1").await;
    assert_eq!(status, 200);
    assert_eq!(seeded().await, first);
}

/// The demonstration is created while the service starts. Until the service has the latest records,
/// it answers 503.
#[tokio::test]
async fn what_is_answered_503_at_start_is_asked_again_under_one_idempotency_key() {
    let keys = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&keys);
    let busy_twice = Router::new().fallback(async move |headers: HeaderMap| {
        let mut seen = seen.lock();
        seen.push(headers["idempotency-key"].to_str().unwrap().to_owned());
        let status =
            if seen.len() <= 2 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::CREATED };
        (status, only("secret", "svc_made").to_string())
    });
    let key = demo::api_key(&busy_twice, "owner's", nothing()).await.unwrap();
    assert_eq!(key, "svc_made");
    let keys = keys.lock().clone();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");

    let refuses = Router::new().fallback(async || (StatusCode::FORBIDDEN, "{}"));
    assert!(demo::api_key(&refuses, "owner's", nothing()).await.is_err());
}
