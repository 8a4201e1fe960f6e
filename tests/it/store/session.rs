//! Checks of a session before the service uses it, and of a write before it is committed.

use authority_store::{Db, Error, Limits, Serving, Store, migrate};
use diesel_async::SimpleAsyncConnection;

use super::{number, of, with_tables};
use crate::support::database::Database;

/// Returns the error with which a store refuses a connection to the database.
async fn refused(database: &Database) -> String {
    match database.store().system().await {
        Ok(_) => panic!("the session is used"),
        Err(fault) => fault.to_string(),
    }
}

/// Returns the statements that set a default of new
/// sessions, each with the statement that resets it.
fn places(database: &Database, setting: &str) -> Vec<(String, String)> {
    let (login, name) = database.names();
    let of_database = format!("ALTER DATABASE {name} ");
    let of_login = format!("ALTER ROLE {login} IN DATABASE {name} ");
    let member = setting.split_whitespace().next().unwrap();
    [of_database, of_login]
        .map(|begin| (format!("{begin}SET {setting}"), format!("{begin}RESET {member}")))
        .to_vec()
}

#[tokio::test]
async fn a_session_in_which_triggers_do_not_run_is_refused() {
    let database = with_tables().await;
    let kept = database.store();
    for (set, remedy) in places(&database, "session_replication_role = replica") {
        database.run(&set).await;
        let why = refused(&database).await;
        assert!(why.contains("the setting `session_replication_role` is `replica`"), "{why}");
        assert!(why.contains(&remedy), "{why}");
        // Other roles of the pools, and connections outside the pools, are refused as well.
        let store = database.store();
        assert!(store.recorder().await.is_err() && store.tail().await.is_err());
        assert!(store.read_tx(&of("a"), async |_: &mut Db| Ok::<_, Error>(())).await.is_err());
        let served = Serving::inspect(&database.address()).await;
        assert!(matches!(&served, Err(Error::Address(why)) if why.contains(&remedy)), "{served:?}");
        let mut owner = database.owner().await;
        for sql in ["SET session_replication_role = origin", remedy.as_str()] {
            owner.batch_execute(sql).await.unwrap();
        }
        drop(database.store().system().await.unwrap());
    }
    let set = places(&database, "session_replication_role = replica").remove(0).0;
    database.run(&set).await;
    let (login, _) = database.names();
    let migrated = migrate(&database.owner_address(), login).await;
    let named = |error: &Error| matches!(error, Error::Address(why) if why.contains("`replica`"));
    assert!(migrated.as_ref().is_err_and(named), "{migrated:?}");
    drop(kept);
}

#[tokio::test]
async fn rows_names_and_roles_are_what_the_service_means() {
    let database = with_tables().await;
    database.run("CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO PUBLIC").await;
    for (setting, named) in [
        ("row_security = off", "the setting `row_security` is `off`"),
        ("search_path = other, public", "the setting `search_path` is `other, public`"),
        ("search_path = other", "the setting `search_path` is `other`"),
        ("search_path = public, pg_catalog", "the setting `search_path`"),
    ] {
        for (set, reset) in places(&database, setting) {
            database.run(&set).await;
            let why = refused(&database).await;
            assert!(why.contains(named), "{set}: {why}");
            database.run(&reset).await;
        }
    }
    // Schemas after `public` do not hide its tables: they are permitted.
    let set = places(&database, "search_path = public, other").remove(0);
    database.run(&set.0).await;
    drop(database.store().system().await.unwrap());
    database.run(&set.1).await;

    // This database needs roles of its own, because other tests use the template's roles at the
    // same time.
    let (login, _) = database.names();
    migrate(&database.owner_address(), login).await.unwrap();
    let role = "DO $$ BEGIN EXECUTE format('{}', authority_role('tenant'), authority_role('system')); \
                END $$";
    for (wrong, right, named) in [
        ("GRANT %2$I TO %1$I", "REVOKE %2$I FROM %1$I", "has the rights of"),
        ("ALTER ROLE %1$I BYPASSRLS", "ALTER ROLE %1$I NOBYPASSRLS", "bypasses row-level security"),
        ("ALTER ROLE %1$I SUPERUSER", "ALTER ROLE %1$I NOSUPERUSER", "bypasses row-level security"),
    ] {
        database.run(&role.replace("{}", wrong)).await;
        let read = database.store().read_tx(&of("a"), async |_: &mut Db| Ok::<_, Error>(()));
        let why = read.await.unwrap_err().to_string();
        assert!(why.contains(named), "{wrong}: {why}");
        database.run(&role.replace("{}", right)).await;
    }
    let read = database.store().read_tx(&of("a"), async |_: &mut Db| Ok::<_, Error>(()));
    read.await.unwrap();
}

#[tokio::test]
async fn a_database_whose_sessions_begin_read_only_is_named() {
    let database = with_tables().await;
    database.run(&places(&database, "default_transaction_read_only = on").remove(0).0).await;
    let why = refused(&database).await;
    assert!(why.contains("the setting `default_transaction_read_only` is `on`"), "{why}");
}

const CHANGE: &str = "INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a')";

#[tokio::test]
async fn a_change_of_authority_without_its_revision_is_rolled_back() {
    let database = with_tables().await;
    let store = database.store();
    for (breaks, mends, named) in [
        (
            "ALTER TABLE things DISABLE TRIGGER log_change",
            "ALTER TABLE things ENABLE TRIGGER log_change",
            "the trigger `log_change` of `things` is missing or disabled",
        ),
        (
            "ALTER TABLE things ENABLE REPLICA TRIGGER log_change",
            "ALTER TABLE things ENABLE TRIGGER ALL",
            "the trigger `log_change` of `things` is missing or disabled",
        ),
        (
            "ALTER TABLE authority_changes DISABLE TRIGGER USER",
            "ALTER TABLE authority_changes ENABLE TRIGGER USER",
            "the trigger `raise_revision` of `authority_changes` is missing or disabled",
        ),
        (
            "CREATE RULE swallow AS ON INSERT TO authority_changes DO INSTEAD NOTHING",
            "DROP RULE swallow ON authority_changes",
            "`authority_changes` did not take it",
        ),
    ] {
        database.run(breaks).await;
        let written = store.write_tx(&of("a"), async |db: &mut Db| {
            Ok::<_, Error>(db.batch_execute(CHANGE).await?)
        });
        let why = written.await.unwrap_err().to_string();
        assert!(why.contains(named), "{breaks}: {why}");
        database.run(mends).await;
        let mut db = database.owner().await;
        assert_eq!(number(&mut db, "SELECT count(*) AS n FROM things").await, 0, "{breaks}");
    }
    // Uses a new store, because an open session keeps the plan that the rule produced.
    let written = database
        .store()
        .write_tx(&of("a"), async |db: &mut Db| Ok::<_, Error>(db.batch_execute(CHANGE).await?));
    written.await.unwrap();
    let mut db = database.owner().await;
    assert_eq!(number(&mut db, "SELECT max(revision) AS n FROM tenant_revisions").await, 1);
}

/// A pooled connection keeps a setting that was made with superuser rights.
#[tokio::test]
async fn a_change_in_a_session_that_became_a_replica_is_rolled_back() {
    let database = with_tables().await;
    let limits = Limits { tenant: 1, ..Limits::default() };
    let store = Store::open(&database.owner_address(), &limits).unwrap();
    let leak = "RESET ROLE; SET session_replication_role = replica; \
                SELECT set_config('role', authority_role('tenant'), false)";
    for sql in [leak, CHANGE, "UPDATE things SET label = 'b'"] {
        let written =
            store.write_tx(&of("a"), async move |db| Ok::<_, Error>(db.batch_execute(sql).await?));
        match (written.await, sql) {
            (Ok(()), sql) => assert_ne!(sql, CHANGE, "it was committed"),
            (Err(fault), sql) => {
                let why = fault.to_string();
                assert!(
                    why.contains("while `session_replication_role` is `replica`"),
                    "{sql}: {why}"
                );
            }
        }
    }
    let mut db = database.owner().await;
    assert_eq!(number(&mut db, "SELECT count(*) AS n FROM things").await, 0);
}

#[tokio::test]
async fn a_write_of_many_rows_writes_its_tenants_revision_once() {
    let database = with_tables().await;
    let many = "INSERT INTO things (id, tenant_id) \
                SELECT n::text, 'svc:tenant:a' FROM generate_series(1, 500) AS n";
    let written = database
        .store()
        .write_tx(&of("a"), async move |db| Ok::<_, Error>(db.batch_execute(many).await?));
    written.await.unwrap();
    let mut db = database.owner().await;
    assert_eq!(number(&mut db, "SELECT max(revision) AS n FROM tenant_revisions").await, 500);
    let dead = "SELECT pg_relation_size('tenant_revisions') AS n";
    assert_eq!(number(&mut db, dead).await, 8192, "each change wrote the row");
}

#[tokio::test]
async fn what_is_not_as_migrations_made_it_is_found_at_start() {
    let database = with_tables().await;
    database.run("INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a')").await;
    // The template's roles belong to another database: this one gets its own.
    migrate(&database.owner_address(), database.names().0).await.unwrap();
    Serving::inspect(&database.address()).await.unwrap();
    for (breaks, mends, named) in [
        (
            "SELECT setval('authority_changes_seq_seq', 1, false)",
            "SELECT setval('authority_changes_seq_seq', 1)",
            "SELECT setval('authority_changes_seq_seq', 1)",
        ),
        (
            "SELECT setval('record_versions_version_seq', 1, false)",
            "SELECT setval('record_versions_version_seq', 1)",
            "the numbers of `record_versions` go up to 1",
        ),
        (
            "ALTER TABLE decisions DISABLE TRIGGER append_only",
            "ALTER TABLE decisions ENABLE TRIGGER append_only",
            "ALTER TABLE decisions ENABLE TRIGGER append_only",
        ),
        (
            "ALTER TABLE tools NO FORCE ROW LEVEL SECURITY",
            "ALTER TABLE tools FORCE ROW LEVEL SECURITY",
            "row-level security of `tools` is off",
        ),
    ] {
        database.run(breaks).await;
        match Serving::inspect(&database.address()).await {
            Err(Error::Address(why)) => assert!(why.contains(named), "{breaks}: {why}"),
            other => panic!("{breaks}: {other:?}"),
        }
        database.run(mends).await;
    }
    Serving::inspect(&database.address()).await.unwrap();
}
