//! Runs this binary's migrations, and checks whether they were run.

use std::{collections::HashSet, time::Duration};

use diesel::{
    QueryDsl, define_sql_function,
    migration::{Migration, MigrationSource},
    pg::Pg,
    sql_types::{BigInt, Bool, Text},
};
use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection, async_connection_wrapper::AsyncConnectionWrapper,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::{Address, Db, Error, RunQueryDsl, Scope, Store, locks::MIGRATIONS as LOCK};

pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

const PAUSE: Duration = Duration::from_millis(100);
/// How often rights are granted if other work is in the way.
const TRIES: u32 = 5;
/// Attempts after which the lock's holder is assumed to be stuck.
const PATIENCE: u32 = 6_000;

define_sql_function! { fn pg_try_advisory_lock(key: BigInt) -> Bool; }
define_sql_function! { fn pg_advisory_unlock(key: BigInt) -> Bool; }
define_sql_function! { fn set_config(name: Text, value: Text, is_local: Bool) -> Text; }
define_sql_function! { fn current_database() -> Text; }
define_sql_function! { fn has_schema_privilege(schema: Text, privilege: Text) -> Bool; }
define_sql_function! {
    fn has_database_privilege(role: Text, database: Text, privilege: Text) -> Bool;
}

diesel::table! {
    __diesel_schema_migrations (version) {
        version -> Text,
        run_on -> Timestamp,
    }
}

/// By default only the owner may read a new table; readiness reads this one as the service.
const READABLE: &str = "CALL grant_to('{system}', 'SELECT ON __diesel_schema_migrations')";

/// Creates this database's roles, grants them to `login` (the role that [`Store::open`] connects
/// as), and runs the pending migrations; returns their versions. `owner` needs the right to create
/// missing roles, and should own the database: then it can revoke everyone else's right to connect.
/// Several processes may run it at the same time.
pub async fn migrate(owner: &Address, login: &str) -> Result<Vec<String>, Error> {
    let mut db = owner.connect().await?;
    let user = owner.user().unwrap_or_default();
    if !diesel::select(has_schema_privilege("public", "CREATE")).get_result(&mut db).await? {
        return Err(Error::Address(format!(
            "the login `{user}` may not create tables in the schema `public` of {}; as a superuser run \
             there: ALTER SCHEMA public OWNER TO \"{user}\"",
            owner.shown()
        )));
    }
    lock(&mut db).await?;
    let login = set_config("authority.login", login, false);
    diesel::select(login).execute(&mut db).await?;
    persistently(&mut db, include_str!("roles.sql")).await.map_err(|fault| match fault {
        // If the database refuses its owner something, an operator must act.
        Error::Internal(told) => Error::Address(told),
        other => other,
    })?;
    warn_if_open(&mut db).await?;
    // Diesel's harness is synchronous; on this thread it needs no multi-threaded runtime.
    let run = tokio::task::spawn_blocking(move || {
        let mut harness = AsyncConnectionWrapper::<AsyncPgConnection>::from(db);
        let done = harness.run_pending_migrations(MIGRATIONS);
        let done = done.map(|versions| versions.iter().map(ToString::to_string).collect());
        (done.map_err(|fault| Error::Internal(format!("a migration failed: {fault}"))), harness)
    });
    let (done, harness) = run.await.map_err(|fault| Error::Internal(fault.to_string()))?;
    let done: Vec<String> = done?;
    let mut db = harness.into_inner();
    persistently(&mut db, READABLE).await?;
    diesel::select(pg_advisory_unlock(LOCK)).execute(&mut db).await?;
    Ok(done)
}

/// Rights are granted beside services that use the tables: of two that wait for one another, Postgres ends one.
async fn persistently(db: &mut AsyncPgConnection, statements: &str) -> Result<(), Error> {
    for _ in 1..TRIES {
        match db.batch_execute(statements).await.map_err(Error::from) {
            Err(Error::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
            ended => return ended,
        }
    }
    Ok(db.batch_execute(statements).await?)
}

/// Only a database's owner can close it to the cluster's other logins; for others Postgres only sends a notice.
async fn warn_if_open(db: &mut AsyncPgConnection) -> Result<(), Error> {
    let is_open = has_database_privilege("public", current_database(), "CONNECT");
    if diesel::select(is_open).get_result(db).await? {
        tracing::warn!(
            "every login of this PostgreSQL cluster may connect to the database: its owner closes \
             it by REVOKE CONNECT ON DATABASE … FROM PUBLIC"
        );
    }
    Ok(())
}

/// Polls instead of waiting inside Postgres: a waiting session holds a snapshot, for which another's CREATE
/// INDEX CONCURRENTLY would wait.
async fn lock(db: &mut AsyncPgConnection) -> Result<(), Error> {
    for _ in 0..PATIENCE {
        if diesel::select(pg_try_advisory_lock(LOCK)).get_result(db).await? {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Error::Unavailable("another process has been migrating for ten minutes".to_owned()))
}

impl Store {
    /// Whether every migration that this binary knows has run. Later ones do not matter: during a
    /// rollout the old version continues to serve.
    pub async fn is_current(&self) -> Result<bool, Error> {
        let read = async move |db: &mut Db| {
            let versions = __diesel_schema_migrations::table
                .select(__diesel_schema_migrations::version)
                .load::<String>(db);
            Ok::<_, Error>(versions.await?)
        };
        let run = self.read_tx(&Scope::service(), read).await?;
        let run: HashSet<_> = run.into_iter().collect();
        Ok(known()?.iter().all(|version| run.contains(version)))
    }
}

fn known() -> Result<Vec<String>, Error> {
    let known: Vec<Box<dyn Migration<Pg>>> = MIGRATIONS
        .migrations()
        .map_err(|fault| Error::Internal(format!("the migrations are unreadable: {fault}")))?;
    Ok(known.iter().map(|each| each.name().version().to_string()).collect())
}
