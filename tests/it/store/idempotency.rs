//! The table of idempotency keys: access rights and retention.

use authority_api::idempotency::sweep;
use authority_process::clock::Clock;
use authority_store::{Error, Scope, Store};
use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection;

use super::{number, of, owner};
use crate::support::database::Database;

/// Inserts four keys for each of two tenants: a decision, a create, a rotation with a secret, a
/// report.
const KEYS: &str = "INSERT INTO idempotency_keys \
    (tenant_id, caller, scope, key, request_sha256, answer, sealed, decision_id, created_at) \
    SELECT t, 'ada', s, 'k', sha256('x'), 'y', s = 'rotate', \
           CASE s WHEN 'evaluate' THEN 'svc:decision:1' END, now() \
    FROM unnest(ARRAY['svc:tenant:a', 'svc:tenant:b']) t, unnest(ARRAY['evaluate', 'create', 'rotate', 'report']) s";

async fn with_keys() -> Database {
    let database = Database::fresh().await;
    database.run(KEYS).await;
    database
}

async fn count(store: &Store, scope: &Scope) -> i64 {
    let all = "SELECT count(*) AS n FROM idempotency_keys";
    let read = store.read_tx(scope, async move |db| Ok::<_, Error>(number(db, all).await)).await;
    read.unwrap()
}

async fn refuses(store: &Store, scope: &Scope, sql: &'static str) -> bool {
    let done = store.write_tx(scope, async move |db| Ok::<_, Error>(db.batch_execute(sql).await?));
    done.await.is_err()
}

#[tokio::test]
async fn a_tenant_reaches_no_decision_and_the_recorder_nothing_else() {
    let database = with_keys().await;
    let store = database.store();
    assert_eq!(count(&store, &of("a")).await, 3);
    assert_eq!(count(&store, &of("c")).await, 0);
    assert_eq!(count(&store, &owner()).await, 8);
    let row = "INSERT INTO idempotency_keys \
        (tenant_id, caller, scope, key, request_sha256, sealed, decision_id, created_at) VALUES ";
    for (scope, sql) in [
        (
            of("a"),
            format!("{row} ('svc:tenant:b', 'ada', 's', 'l', sha256('x'), false, NULL, now())"),
        ),
        (
            of("a"),
            format!("{row} ('svc:tenant:a', 'ada', 's', 'l', sha256('x'), false, 'd', now())"),
        ),
        (of("a"), "UPDATE idempotency_keys SET caller = 'bob'".to_owned()),
        (owner(), "UPDATE idempotency_keys SET request_sha256 = sha256('z')".to_owned()),
    ] {
        let sql: &'static str = sql.leak();
        assert!(refuses(&store, &scope, sql).await, "{sql}");
    }
    let mut recorder = store.recorder().await.unwrap();
    let decisions = "SELECT count(tenant_id) AS n FROM idempotency_keys";
    assert_eq!(number(&mut recorder, decisions).await, 2);
    for sql in [
        "SELECT answer FROM idempotency_keys",
        "DELETE FROM idempotency_keys",
        "UPDATE idempotency_keys SET decision_id = NULL",
        &format!("{row} ('svc:tenant:a', 'ada', 's', 'l', sha256('x'), false, NULL, now())"),
    ] {
        assert!(recorder.batch_execute(sql).await.is_err(), "{sql}");
    }
    recorder.batch_execute("UPDATE idempotency_keys SET answer = 'z'").await.unwrap();
    let mut db = database.owner().await;
    let changed = "SELECT count(*) AS n FROM idempotency_keys WHERE answer = 'z'";
    assert_eq!(number(&mut db, changed).await, 2);
}

#[tokio::test]
async fn secrets_are_forgotten_after_minutes_and_answers_after_a_day() {
    let database = with_keys().await;
    let store = database.store();
    let mut db = database.owner().await;
    let kept = "SELECT count(answer) AS n FROM idempotency_keys";
    let now = Clock::default().now();
    for (after, answers, keys) in [
        (TimeDelta::minutes(9), 8, 8),
        (TimeDelta::minutes(11), 6, 8),
        (TimeDelta::hours(23), 6, 8),
        (TimeDelta::hours(25), 0, 0),
    ] {
        sweep(&store, now + after).await.unwrap();
        assert_eq!(number(&mut db, kept).await, answers, "{after}");
        assert_eq!(count(&store, &owner()).await, keys, "{after}");
    }
}
