//! Runs this binary's migrations.

use std::time::Duration;

use diesel::{
    define_sql_function,
    sql_types::{BigInt, Bool, Text},
};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};

use super::{
    address::Address,
    digests,
    error::Error,
    lock_wait,
    locks::MIGRATIONS as LOCK,
    query::RunQueryDsl,
    roles, session,
    versions::{self, Difference},
};

const PAUSE: Duration = Duration::from_millis(100);
/// The number of attempts to grant rights if other transactions interfere.
const TRIES: u32 = 5;
/// The number of attempts after which the lock's holder is assumed to be stuck.
const PATIENCE: u32 = 6_000;

define_sql_function! { fn pg_try_advisory_lock(key: BigInt) -> Bool; }
define_sql_function! { fn pg_advisory_unlock(key: BigInt) -> Bool; }
define_sql_function! { fn set_config(name: Text, value: Text, is_local: Bool) -> Text; }
define_sql_function! { fn current_database() -> Text; }
define_sql_function! { fn has_schema_privilege(schema: Text, privilege: Text) -> Bool; }
define_sql_function! {
    fn has_database_privilege(role: Text, database: Text, privilege: Text) -> Bool;
}

/// Lets the system's role read the tables of migrations. The service checks these tables at startup
/// and for readiness. By default, only the owner may read a new table.
const READABLE: &str =
    "CALL grant_to('{system}', 'SELECT ON __diesel_schema_migrations, migration_digests')";

/// The result of [`migrate`].
#[derive(Debug)]
pub struct Migrated {
    /// The versions of the migrations that were run.
    pub versions: Vec<String>,
    /// The migrations that this binary does not know, such as `48 to 49`, if the schema is newer.
    pub newer: Option<String>,
}

/// Creates this database's roles, grants them and runs the pending migrations.
///
/// The roles are granted to `owner`'s login and to `login`, the role of [`super::Store::open`].
/// `owner` needs the right to create missing roles. It should also own the database, which allows
/// it to revoke the right of all other roles to connect. Several processes may run this at the same
/// time.
///
/// # Errors
/// [`Error::Address`] with the action that an operator must take, for example if the database was
/// created by other migrations than this binary's. Completed steps are not undone.
pub async fn migrate(owner: &Address, login: &str) -> Result<Migrated, Error> {
    let mut db = owner.connect().await?;
    session::check(&mut db).await?;
    if !may_create(&mut db).await? {
        let user = owner.user().unwrap_or_default();
        return Err(Error::Address(format!(
            "the login `{user}` may not create tables in the schema `public` of {}: migrate with the URL of the \
             database's owner (DATABASE_OWNER_URL or `database.owner_url`), or as a superuser run there: \
             ALTER SCHEMA public OWNER TO \"{user}\"",
            owner.shown()
        )));
    }
    lock(&mut db).await?;
    db.batch_execute(&lock_wait::limit()).await?;
    if digests::has_some(&mut db).await? {
        digests::check(&mut db, owner).await?;
    }
    make_roles(&mut db, login).await.map_err(|fault| match fault {
        // If the database refuses its owner, an operator must act.
        Error::Internal(told) => Error::Address(told),
        other => other,
    })?;
    warn_if_open(&mut db).await?;
    digests::store(&mut db).await?;
    let versions = lock_wait::run(owner, &mut db).await?;
    persistently(&mut db, READABLE).await?;
    let newer = versions::numbers(&Difference::read(&mut db).await?.unknown);
    diesel::select(pg_advisory_unlock(LOCK)).execute(&mut db).await?;
    Ok(Migrated { versions, newer: Some(newer).filter(|newer| !newer.is_empty()) })
}

/// Sets whether the service may remove rows of archived decisions.
///
/// # Errors
/// `owner` does not own the tables, or the database is unavailable.
pub async fn allow_removal(owner: &Address, is_allowed: bool) -> Result<(), Error> {
    let mut db = owner.connect().await?;
    session::check(&mut db).await?;
    db.batch_execute(&lock_wait::limit()).await?;
    persistently(&mut db, &format!("CALL allow_removal({is_allowed})")).await
}

/// Whether the login may create tables. Only migrations need this right.
pub async fn may_migrate(owner: &Address) -> Result<bool, Error> {
    may_create(&mut owner.connect().await?).await
}

async fn may_create(db: &mut AsyncPgConnection) -> Result<bool, Error> {
    Ok(diesel::select(has_schema_privilege("public", "CREATE")).get_result(db).await?)
}

async fn make_roles(db: &mut AsyncPgConnection, login: &str) -> Result<(), Error> {
    let database: String = diesel::select(current_database()).get_result(db).await?;
    let suffix = roles::suffix(&database);
    for (name, value) in [("authority.login", login), ("authority.role_suffix", &suffix)] {
        diesel::select(set_config(name, value, false)).execute(db).await?;
    }
    persistently(db, include_str!("roles.sql")).await
}

/// Runs statements that grant rights, with retries.
///
/// Services use the tables at the same time. If two statements wait for each other, Postgres
/// cancels one.
async fn persistently(db: &mut AsyncPgConnection, statements: &str) -> Result<(), Error> {
    for _ in 1..TRIES {
        match db.batch_execute(statements).await.map_err(Error::from) {
            Err(error) if error.is_passing() => tokio::time::sleep(PAUSE).await,
            ended => return ended,
        }
    }
    Ok(db.batch_execute(statements).await?)
}

/// Warns if all logins of the cluster may connect.
///
/// Only a database's owner can change that; for other logins, Postgres only sends a notice.
async fn warn_if_open(db: &mut AsyncPgConnection) -> Result<(), Error> {
    let is_open = has_database_privilege("public", current_database(), "CONNECT");
    if diesel::select(is_open).get_result(db).await? {
        tracing::warn!(
            "found a database to which every login may connect; revoke CONNECT from PUBLIC"
        );
    }
    Ok(())
}

/// Takes the lock. Polls instead of waiting inside Postgres.
///
/// A waiting session holds a snapshot, and another session's CREATE INDEX CONCURRENTLY would wait
/// for it.
async fn lock(db: &mut AsyncPgConnection) -> Result<(), Error> {
    for _ in 0..PATIENCE {
        if diesel::select(pg_try_advisory_lock(LOCK)).get_result(db).await? {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Error::Unavailable("another process has been migrating for ten minutes".to_owned()))
}
