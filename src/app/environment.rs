//! A database serves one environment.
//!
//! Development signs tokens with its own key, and the demonstration's people and API keys are not
//! secret. Neither belongs in production. Production refuses a database with traces of development.
//! Development refuses a database that production has used, and a database of another application,
//! before any change or migration.

use authority_store::{self as store, Address, Db, RunQueryDsl, Scope, Store, locks};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Text},
};

/// The reason for refusing the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(
        "production refuses this database, since development has used it: it holds {0}; give \
         production an empty database of its own"
    )]
    Development(String),
    #[error(
        "development refuses this database, since production has used it: set `environment = \"production\"` or \
         pass --production; to use a copy for development, its owner must first run: \
         DELETE FROM production_use"
    )]
    Production,
    #[error(
        "development refuses the database {0}, since it has tables of another application; unset DATABASE_URL, or set \
         it to an empty database"
    )]
    OtherApplication(String),
}

/// Finds traces of development.
///
/// Every start in development leaves a row, also with an external identity provider. Keys are kept
/// forever: the key of development's tokens is a trace even of a release that left no row. The
/// other traces help an operator to recognise the database.
const TRACES: &str = "\
     SELECT 'the row in `development_use` of a start in development at ' \
            || to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI UTC') AS what \
     FROM development_use \
     UNION ALL SELECT 'the key `' || kid || '` of the development identity provider' \
     FROM signing_keys WHERE purpose = 'dev-idp' \
     UNION ALL SELECT 'the tenant `' || id || '` of the demonstration' \
     FROM tenants WHERE notes = 'the demonstration tenant' \
     UNION ALL SELECT 'the log `' || origin || '`' \
     FROM log_heads WHERE origin ~ '^(127\\.0\\.0\\.1|localhost|\\[::1\\])[:/]'";

#[derive(QueryableByName)]
struct Trace {
    #[diesel(sql_type = Text)]
    what: String,
}

/// Inserts the permanent row of `production_use`, if it is absent.
const USE: &str =
    "INSERT INTO production_use SELECT WHERE NOT is_production() ON CONFLICT DO NOTHING";

/// Serializes starts on the database: of two starts at the same time, the second sees the row of
/// the first.
async fn turn(db: &mut Db) -> Result<(), store::Error> {
    let turn = diesel::sql_query("SELECT pg_advisory_xact_lock($1)");
    turn.bind::<BigInt, _>(locks::ENVIRONMENT).execute(db).await?;
    Ok(())
}

/// Claims the database for production, unless it has traces of development. The error lists all
/// traces. Development cannot add traces to a database that production has claimed.
///
/// # Errors
/// [`Error::Development`], or the database is unavailable.
pub(super) async fn take_for_production(store: &Store) -> Result<(), Error> {
    let taken = store.write_tx(&Scope::service(), async |db: &mut Db| {
        turn(db).await?;
        let taken: Answer = diesel::sql_query(IS_PRODUCTION).get_result(db).await?;
        if taken.yes {
            return Ok(Vec::new());
        }
        let traces: Vec<Trace> = diesel::sql_query(TRACES).load(db).await?;
        if traces.is_empty() {
            diesel::sql_query(USE).execute(db).await?;
        }
        Ok::<_, store::Error>(traces)
    });
    let traces: Vec<String> = taken.await?.into_iter().map(|trace| trace.what).collect();
    if traces.is_empty() { Ok(()) } else { Err(Error::Development(traces.join(", "))) }
}

/// Inserts the permanent row of `development_use`, if it is absent.
const START: &str = "INSERT INTO development_use SELECT WHERE NOT EXISTS (SELECT FROM development_use) \
     ON CONFLICT DO NOTHING";

/// Marks the database as used by development, unless production uses it.
///
/// # Errors
/// [`Error::Production`], or the database is unavailable.
pub(super) async fn take_for_development(store: &Store) -> Result<(), Error> {
    let marked = store.write_tx(&Scope::service(), async |db: &mut Db| {
        turn(db).await?;
        let productions: Answer = diesel::sql_query(IS_PRODUCTION).get_result(db).await?;
        if !productions.yes {
            diesel::sql_query(START).execute(db).await?;
        }
        Ok::<_, store::Error>(productions.yes)
    });
    if marked.await? { Err(Error::Production) } else { Ok(()) }
}

/// Whether the function `is_production` exists. A database that was not migrated yet lacks it.
const IS_KNOWN: &str = "SELECT to_regprocedure('public.is_production()') IS NOT NULL AS yes";
const IS_PRODUCTION: &str = "SELECT public.is_production() AS yes";

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Bool)]
    yes: bool,
}

/// Whether the database has tables, but no table of this service. Many applications use
/// `DATABASE_URL`, and a shell may have another application's. Tables of extensions do not count.
const IS_OTHERS: &str = "\
     SELECT to_regclass('public.migration_digests') IS NULL AND EXISTS ( \
       SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
       WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
         AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass \
                         AND d.objid = c.oid AND d.deptype = 'e')) AS yes";

/// Refuses a database that production or another application has used. This works with any version
/// of the schema.
///
/// # Errors
/// [`Error::Production`], [`Error::OtherApplication`], or the database is unavailable.
pub(super) async fn refuse_others(login: &Address) -> Result<(), Error> {
    let mut db = login.connect().await.map_err(store::Error::from)?;
    if holds(&mut db, IS_KNOWN).await? {
        return if holds(&mut db, IS_PRODUCTION).await? { Err(Error::Production) } else { Ok(()) };
    }
    if holds(&mut db, IS_OTHERS).await? {
        return Err(Error::OtherApplication(login.shown()));
    }
    Ok(())
}

async fn holds(db: &mut Db, question: &'static str) -> Result<bool, Error> {
    let answer: Answer =
        diesel::sql_query(question).get_result(db).await.map_err(store::Error::from)?;
    Ok(answer.yes)
}
