//! Migrations: several at once, alongside long readers, and the check whether they have run.

use std::time::{Duration, Instant};

use authority_store::{Address, Limits, Serving, Store, embedded::LOGIN, migrate};
use diesel_async::SimpleAsyncConnection;

use crate::support::database::Database;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_migrators_at_once_run_each_once() {
    let database = Database::empty().await;
    let owner = database.owner_address();
    let migrators: Vec<_> = (0..4)
        .map(|_| {
            let owner: Address = owner.clone();
            tokio::spawn(async move { migrate(&owner, LOGIN).await.unwrap().versions.len() })
        })
        .collect();
    let mut ran = Vec::new();
    for migrator in migrators {
        ran.push(migrator.await.unwrap());
    }
    ran.sort_unstable();
    assert_eq!(ran[..3], [0, 0, 0]);
    assert!(ran[3] > 0);
    assert!(database.store().is_current().await.unwrap());
    database.run("DELETE FROM __diesel_schema_migrations").await;
    assert!(!database.store().is_current().await.unwrap());
}

#[tokio::test]
async fn an_empty_database_is_not_current() {
    let database = Database::empty().await;
    assert!(!database.store().is_current().await.unwrap_or(false));
}

/// Managed PostgreSQL services give no superuser: the user owns the database and may create roles.
#[tokio::test]
async fn an_owner_without_superuser_rights_suffices() {
    let database = Database::empty().await;
    let name = format!("plain_{}", database.url().rsplit('/').next().unwrap());
    let mut db = database.owner().await;
    let make = format!(
        "CREATE ROLE {name} LOGIN CREATEROLE;
         DO $$ BEGIN
             EXECUTE format('ALTER DATABASE %I OWNER TO {name}', current_database());
         END $$"
    );
    db.batch_execute(&make).await.unwrap();
    let url = database.url().replace(&format!("//{LOGIN}@"), &format!("//{name}@"));
    let address = Address::parse(&url).unwrap();
    let ran = migrate(&address, &name).await;
    let tables = "CREATE TABLE things (id text PRIMARY KEY, tenant_id text NOT NULL);
                  CALL govern('things', true);
                  SELECT set_config('role', authority_role('system'), false);
                  INSERT INTO things VALUES ('1', 'a')";
    if ran.is_ok() {
        let mut owner = address.connect().await.unwrap();
        owner.batch_execute(tables).await.unwrap();
        let store = Store::open(&address, &Limits::default()).unwrap();
        assert!(store.is_current().await.unwrap());
        assert_eq!(
            super::number(&mut owner, "SELECT count(*) AS n FROM authority_changes").await,
            1
        );
    }
    database.remove().await;
    let cleared = Database::empty().await;
    cleared.run(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await;
    ran.unwrap();
}

/// The tables and the function of the migration `programme`, which has references to tenants.
const PROGRAMME: &str = "
    DROP TABLE consultants, certifications, consultant_links, white_label_configs, leads,
        address_keys, anonymous_calls, lead_repeats;
    DROP FUNCTION certification_holds;
    DELETE FROM __diesel_schema_migrations WHERE version = '00000000000011'";

/// While a migration waits for a table's lock, all later statements on that table would wait as
/// well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_waits_for_a_writer_gives_up_and_names_it() {
    // A copied database gets new roles, which waits for the writer as well.
    let database = Database::empty().await;
    let owner = database.owner_address();
    migrate(&owner, LOGIN).await.unwrap();
    database.run(PROGRAMME).await;

    let mut writer = database.owner().await;
    writer.batch_execute("BEGIN; LOCK TABLE tenants IN ROW EXCLUSIVE MODE").await.unwrap();
    let pid = super::number(&mut writer, "SELECT pg_backend_pid()::bigint AS n").await;
    let since = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(20), migrate(&owner, LOGIN)).await;
    let told = ended.expect("it waits for the writer").unwrap_err().to_string();
    assert!(since.elapsed() > Duration::from_secs(4), "it waited for {:?}", since.elapsed());
    for part in [
        "waited 5 s for a lock: ShareRowExclusiveLock on the table `tenants`",
        &format!("held by process {pid} of the login `postgres`"),
        "run `agent-authority migrate` again",
        "00000000000011_programme",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!database.store().is_current().await.unwrap());
    writer.batch_execute("COMMIT").await.unwrap();
    let done = migrate(&owner, LOGIN).await.unwrap();
    assert_eq!(done.versions, ["00000000000011"]);
    assert_eq!(done.newer, None);
}

/// Neither `migrate` nor a start changes a database that other migrations made.
#[tokio::test]
async fn a_database_that_other_migrations_made_is_refused() {
    let database = Database::fresh().await;
    let (owner, login) = (database.owner_address(), database.address());
    assert_eq!(migrate(&owner, LOGIN).await.unwrap().versions, [""; 0]);
    Serving::inspect(&login).await.unwrap();
    // The last one is a database from before the digests.
    for (made, different) in [
        ("UPDATE migration_digests SET digest = 'x' WHERE version LIKE '%3'", "(different: 3)"),
        ("DELETE FROM migration_digests WHERE version LIKE '%2'", "(different: 2 to 12)"),
        ("DROP TABLE migration_digests", "(different: 1 to 12)"),
    ] {
        database.run(made).await;
        for told in [
            migrate(&owner, LOGIN).await.unwrap_err().to_string(),
            Serving::inspect(&login).await.unwrap_err().to_string(),
        ] {
            for part in ["was made by other migrations", different, "run `agent-authority reset`"] {
                assert!(told.contains(part), "{made}: {part}: {told}");
            }
        }
    }
}
