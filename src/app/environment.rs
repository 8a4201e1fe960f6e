//! A database serves one environment.
//!
//! Development signs tokens with a key of its own, and the demonstration's people and API keys are known to
//! whoever ran it. Neither belongs in production: it refuses a database that has them, and development refuses
//! one that production has used, before it would add them or migrate it.

use authority_core::store::{self, Address, Db, RunQueryDsl, Scope, Store, locks};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Text},
};

/// Why the database is refused.
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
         pass --production; of a copy that is to serve development, its owner first runs: \
         DELETE FROM production_use"
    )]
    Production,
}

/// A start leaves a row, with an external provider of identities too. Keys are made once and kept, so that the key of
/// development's tokens is there after any use, also of a release that left no row. The others are told so that an
/// operator recognises the database.
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

/// One row for good; a node that is not the first only looks.
const USE: &str =
    "INSERT INTO production_use SELECT WHERE NOT is_production() ON CONFLICT DO NOTHING";

/// Waits until no other start takes the database: of two in the same moment the second sees the row of the first.
async fn turn(db: &mut Db) -> Result<(), store::Error> {
    let turn = diesel::sql_query("SELECT pg_advisory_xact_lock($1)");
    turn.bind::<BigInt, _>(locks::ENVIRONMENT).execute(db).await?;
    Ok(())
}

/// Takes the database for production, unless it has traces of development, and names all of them. Development could
/// add none to one that was taken before.
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

/// One row for good, too.
const START: &str = "INSERT INTO development_use SELECT WHERE NOT EXISTS (SELECT FROM development_use) \
     ON CONFLICT DO NOTHING";

/// Leaves a sign that development uses the database, unless production does.
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

/// Whether the function is there, which schemas before migration 51 lack.
const IS_KNOWN: &str = "SELECT to_regprocedure('public.is_production()') IS NOT NULL AS yes";
const IS_PRODUCTION: &str = "SELECT public.is_production() AS yes";

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Bool)]
    yes: bool,
}

/// Refuses a database that production has used, of whatever version its schema is.
///
/// # Errors
/// [`Error::Production`], or the database is unavailable.
pub(super) async fn refuse_productions(login: &Address) -> Result<(), Error> {
    let mut db = login.connect().await.map_err(store::Error::from)?;
    for question in [IS_KNOWN, IS_PRODUCTION] {
        let answer: Answer =
            diesel::sql_query(question).get_result(&mut db).await.map_err(store::Error::from)?;
        if !answer.yes {
            return Ok(());
        }
    }
    Err(Error::Production)
}
