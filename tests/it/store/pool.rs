//! The pools: timeouts, and a PostgreSQL that becomes unavailable and recovers.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use authority_store::{
    Address, Db, Error, Limits, Notification, RunQueryDsl, Store,
    embedded::{Embedded, LOGIN, Options},
    migrate,
};
use diesel::result::{DatabaseErrorKind as Kind, Error as Sql};
use diesel_async::SimpleAsyncConnection;
use tokio::time::sleep;
use tokio_stream::StreamExt;

use super::{Number, number, of, owner, with_tables};
use crate::support::run_workers;

fn quick() -> Limits {
    Limits {
        tenant: 1,
        wait: Duration::from_millis(300),
        statement: Duration::from_millis(500),
        idle_in_transaction: Duration::from_millis(500),
        ..Limits::default()
    }
}

#[tokio::test]
async fn waits_are_bounded() {
    let database = with_tables().await;
    let store = Store::open(&database.address(), &quick()).unwrap();
    let scope = of("a");
    let sleeper = store.write_tx(&scope, async move |db| {
        Ok::<_, Error>(db.batch_execute("SELECT pg_sleep(20)").await?)
    });
    let (slept, waited) = tokio::join!(sleeper, async {
        sleep(Duration::from_millis(50)).await;
        store
            .read_tx(&of("a"), async move |db| {
                Ok::<_, Error>(number(db, "SELECT 1::bigint AS n").await)
            })
            .await
    });
    assert!(matches!(slept, Err(Error::Timeout(_))), "{slept:?}");
    assert!(matches!(waited, Err(Error::Unavailable(_))), "{waited:?}");

    let scope = of("a");
    let idle = store.write_tx(&scope, async move |_| {
        sleep(Duration::from_secs(2)).await;
        Ok::<_, Error>(())
    });
    assert!(matches!(idle.await, Err(Error::Unavailable(_))));
    let next = store
        .read_tx(&scope, async move |db| Ok::<_, Error>(number(db, "SELECT 1::bigint AS n").await));
    assert_eq!(next.await.unwrap(), 1, "a closed connection was handed out");
}

#[tokio::test]
async fn work_of_a_dropped_caller_ends() {
    let database = with_tables().await;
    let store = Store::open(&database.address(), &quick()).unwrap();
    let scope = of("a");
    let work = store.write_tx(&scope, async move |db| {
        db.batch_execute("INSERT INTO facts VALUES ('1', 'svc:tenant:a'); SELECT pg_sleep(0.2)")
            .await?;
        Ok::<_, Error>(())
    });
    let gone = tokio::time::timeout(Duration::from_millis(50), work).await;
    assert!(gone.is_err());
    sleep(Duration::from_millis(400)).await;
    let scope = of("a");
    let kept = store.read_tx(&scope, async move |db| {
        Ok::<_, Error>(number(db, "SELECT count(*) AS n FROM facts").await)
    });
    assert_eq!(kept.await.unwrap(), 1);
}

#[tokio::test]
async fn a_panic_in_the_work_affects_no_other() {
    let database = with_tables().await;
    let store = Store::open(&database.address(), &quick()).unwrap();
    let scope = of("a");
    let crashed = store.write_tx(&scope, async move |db| {
        db.batch_execute("INSERT INTO facts VALUES ('1', 'svc:tenant:a')").await?;
        panic!("on purpose");
        #[expect(unreachable_code, reason = "names the type")]
        Ok::<(), Error>(())
    });
    assert!(matches!(crashed.await, Err(Error::Internal(_))));
    let scope = of("a");
    let kept = store.read_tx(&scope, async move |db| {
        Ok::<_, Error>(number(db, "SELECT count(*) AS n FROM facts").await)
    });
    assert_eq!(kept.await.unwrap(), 0);
}

/// If one statement is its own transaction, its rows arrive before the commit. The recorder relies
/// on an error if the commit then fails.
#[tokio::test]
async fn a_statement_is_not_done_before_its_commit() {
    let database = with_tables().await;
    database.run("CREATE TABLE late (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)").await;
    database.run("GRANT ALL ON late TO PUBLIC").await;
    let store = Store::open(&database.address(), &quick()).unwrap();
    let mut db = store.recorder().await.unwrap();
    let insert = async |rows: &str, db: &mut Db| {
        let sql = format!("INSERT INTO late VALUES {rows} RETURNING n");
        diesel::sql_query(sql).load::<Number>(db).await
    };
    assert_eq!(insert("(1)", &mut db).await.unwrap().len(), 1);
    let told = insert("(2), (2)", &mut db).await;
    assert!(matches!(told, Err(Sql::DatabaseError(Kind::UniqueViolation, _))), "{}", told.is_ok());
    assert_eq!(number(&mut db, "SELECT count(*) AS n FROM late").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_returns_is_used_again() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = Options { data_dir: PathBuf::from(folder.path()), ..Options::default() };
    let server = Embedded::start(options.clone()).await.unwrap();
    migrate(&Address::parse(&server.owner_url()).unwrap(), LOGIN).await.unwrap();
    let store = Store::open(&Address::parse(&server.url()).unwrap(), &quick()).unwrap();
    let mut heard = store.notifications("authority_changes");
    run_workers([store.listener()]);
    assert_eq!(heard.next().await, Some(Notification::Listening));
    assert!(store.is_current().await.unwrap());

    server.stop().await.unwrap();
    let since = Instant::now();
    for _ in 0..20 {
        let away = store.read_tx(&owner(), async move |_| Ok::<_, Error>(())).await;
        assert!(matches!(away, Err(Error::Unavailable(_))), "{away:?}");
    }
    assert!(since.elapsed() < Duration::from_secs(3), "callers wait for an unavailable server");

    let server = Embedded::start(options).await.unwrap();
    let since = Instant::now();
    while store.read_tx(&owner(), async move |_| Ok::<_, Error>(())).await.is_err() {
        assert!(since.elapsed() < Duration::from_secs(5), "the pool did not recover");
        sleep(Duration::from_millis(20)).await;
    }
    let again = tokio::time::timeout(Duration::from_secs(5), heard.next()).await;
    assert_eq!(again, Ok(Some(Notification::Listening)));
    server.stop().await.unwrap();
}
