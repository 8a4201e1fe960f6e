//! A server with messages in another language: errors are recognized by their SQLSTATE.

use std::{process::Command, time::Duration};

use authority_ids::{ApiKeyId, TenantId};
use authority_store::{
    Address, Error, Limits, Scope, Store,
    embedded::{Embedded, LOGIN, Options},
    migrate, new_id,
};
use diesel_async::SimpleAsyncConnection;

use super::owner;
use crate::support::shown::not_shown;

/// Returns the name of a German locale on this machine.
fn german() -> Option<String> {
    let known = Command::new("locale").arg("-a").output().ok()?;
    let known = String::from_utf8(known.stdout).ok()?;
    known.lines().find(|name| name.starts_with("de_DE.")).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_german_server_are_told_apart() {
    let Some(locale) = german() else {
        return not_shown(
            "this machine has no German locale; `localedef -i de_DE -f UTF-8 de_DE.UTF-8` makes one",
        );
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = [("fsync", "off"), ("lc_messages", &locale), ("deadlock_timeout", "100ms")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let options = Options { data_dir: folder.path().to_owned(), settings, ..Options::default() };
    let server = Embedded::start(options).await.unwrap();
    let as_owner = Address::parse(&server.owner_url()).unwrap();
    migrate(&as_owner, LOGIN).await.unwrap();
    let mut db = as_owner.connect().await.unwrap();
    let tables = "CREATE TABLE parents (id text PRIMARY KEY CHECK (id <> ''));
                  CREATE TABLE children (id text PRIMARY KEY, parent text REFERENCES parents);
                  CALL grant_to('{system}', 'ALL ON parents, children');
                  INSERT INTO parents VALUES ('1'), ('2'); INSERT INTO children VALUES ('1', '1')";
    db.batch_execute(tables).await.unwrap();
    let store = Store::open(&Address::parse(&server.url()).unwrap(), &Limits::default()).unwrap();
    let fault = async |sql: &'static str| {
        let work =
            store.write_tx(&owner(), async move |db| Ok::<_, Error>(db.batch_execute(sql).await?));
        format!("{:?}", work.await.unwrap_err())
    };

    let divided = fault("SELECT 1 / 0").await;
    assert_eq!(divided, "Internal(\"Division durch Null\")", "the messages are not German");
    for (sql, expected) in [
        ("INSERT INTO parents VALUES ('1')", "Conflict(\"parents_pkey\")"),
        ("INSERT INTO parents VALUES ('')", "Refused(\"parents_id_check\")"),
        ("INSERT INTO children VALUES ('2', '9')", "Reference(\"children_parent_fkey\")"),
        ("SET LOCAL statement_timeout = 20; SELECT pg_sleep(9)", "Timeout(\"storniere Anfrage"),
        ("SET TRANSACTION READ ONLY; DELETE FROM children", "Unavailable("),
    ] {
        let fault = fault(sql).await;
        assert!(fault.starts_with(expected), "{sql}: {fault}");
    }

    // An operator ends a session.
    let (ended, ()) = tokio::join!(fault("SELECT pg_sleep(9)"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(9)'";
        db.batch_execute(end).await.unwrap();
    });
    assert!(ended.starts_with("Unavailable(") && ended.contains("Verbindung"), "{ended}");

    // The two transactions deadlock, and PostgreSQL cancels the first or the second.
    let update = |first: &'static str, second: &'static str| {
        store.write_tx(&owner(), async move |db| {
            for id in [first, second] {
                db.batch_execute(&format!("UPDATE parents SET id = id WHERE id = '{id}'")).await?;
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            Ok::<_, Error>(())
        })
    };
    let (one, two) = tokio::join!(update("1", "2"), update("2", "1"));
    let ended: Vec<_> = [one, two].into_iter().filter_map(Result::err).collect();
    assert!(
        matches!(&ended[..], [Error::Unavailable(told)] if told.contains("Verklemmung")),
        "{ended:?}"
    );

    let mut db = store.system().await.unwrap();
    let in_use = db.batch_execute("DELETE FROM parents").await.unwrap_err();
    assert_eq!(format!("{:?}", Error::of_deletion(in_use)), "InUse(\"children_parent_fkey\")");
    drop(db);

    let (tenant, key) = (TenantId::from_slug("acme").unwrap(), ApiKeyId::new(new_id()));
    let scope = Scope { tenant: Some(tenant), actor: "test".to_owned(), api_key: Some(key) };
    let ended = store.confirm(&scope).await;
    assert!(matches!(ended, Err(Error::KeyEnded)), "{ended:?}");
    server.stop().await.unwrap();
}
