//! What development leaves in a database: production refuses such a database.
//!
//! Development has signed tokens with a key of its own, and the demonstration's people and API keys are
//! known to whoever ran it. Neither belongs in production.

use authority_core::store::{self, Db, RunQueryDsl, Scope, Store};
use diesel::{QueryableByName, sql_types::Text};

/// Why production refuses the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(
        "production refuses this database, since development has used it: it holds {0}; give \
         production an empty database of its own"
    )]
    Used(String),
}

/// Keys are made once and kept, so that the key of development's tokens is there after any use. The
/// others are told so that an operator recognises the database.
const TRACES: &str = "\
     SELECT 'the key `' || kid || '` of the development identity provider' AS what \
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

/// Refuses a database with traces of development, naming all of them.
///
/// # Errors
/// [`Error::Used`], or the database is unavailable.
pub(super) async fn refuse(store: &Store) -> Result<(), Error> {
    let read = store.read_tx(&Scope::service(), async |db: &mut Db| {
        let traces: Vec<Trace> = diesel::sql_query(TRACES).load(db).await?;
        Ok::<_, store::Error>(traces)
    });
    let traces: Vec<String> = read.await?.into_iter().map(|trace| trace.what).collect();
    if traces.is_empty() { Ok(()) } else { Err(Error::Used(traces.join(", "))) }
}
