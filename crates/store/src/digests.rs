//! Recognises databases that other migrations made, by the digests of their texts.
//!
//! Until the first release, a change of the schema is made in the files of the migrations. A
//! database that earlier files made has the same versions, but another schema.

use authority_crypto::{hex, sha256};
use diesel::{
    QueryableByName,
    dsl::sql,
    sql_types::{Array, Bool, Text},
};
use diesel_async::SimpleAsyncConnection;

use super::{
    address::Address,
    error::Error,
    query::RunQueryDsl,
    sqlstate::is_undefined_table,
    transaction::Db,
    versions::{MIGRATIONS, numbers},
};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS migration_digests \
    (version text PRIMARY KEY, digest text NOT NULL)";

const STORE: &str = "INSERT INTO migration_digests SELECT * FROM unnest($1, $2) \
    ON CONFLICT (version) DO UPDATE SET digest = excluded.digest";

const HAS_SOME: &str = "to_regclass('public.__diesel_schema_migrations') IS NOT NULL";

/// Selects the versions that have run with another text. Versions of a newer binary are left out.
const DIFFERENT: &str = "SELECT version::text AS version FROM __diesel_schema_migrations \
    JOIN unnest($1, $2) AS known (version, digest) USING (version) \
    LEFT JOIN migration_digests AS stored USING (version) \
    WHERE stored.digest IS DISTINCT FROM known.digest ORDER BY version";

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

/// Whether any migrations have run in the database.
pub(super) async fn has_some(db: &mut Db) -> Result<bool, Error> {
    Ok(diesel::select(sql::<Bool>(HAS_SOME)).get_result(db).await?)
}

/// Stores the digests of this binary's migrations. Call it before the pending migrations run,
/// because a run may be interrupted.
pub(super) async fn store(db: &mut Db) -> Result<(), Error> {
    db.batch_execute(TABLE).await?;
    let (versions, digests) = columns();
    let stored =
        diesel::sql_query(STORE).bind::<Array<Text>, _>(versions).bind::<Array<Text>, _>(digests);
    stored.execute(db).await?;
    Ok(())
}

/// Checks that this binary's migrations made the schema, as far as they have run.
///
/// # Errors
/// [`Error::Address`] with the remedy if other migrations made it.
pub(super) async fn check(db: &mut Db, login: &Address) -> Result<(), Error> {
    let (versions, digests) = columns();
    let different = diesel::sql_query(DIFFERENT)
        .bind::<Array<Text>, _>(&versions)
        .bind::<Array<Text>, _>(digests);
    let different: Vec<String> = match different.load::<Version>(db).await {
        Ok(found) => found.into_iter().map(|found| found.version).collect(),
        // The database is older than the table of digests.
        Err(error) if is_undefined_table(&error) => {
            versions.into_iter().map(str::to_owned).collect()
        }
        Err(error) => return Err(error.into()),
    };
    if different.is_empty() {
        return Ok(());
    }
    Err(Error::Address(format!(
        "the database {} was made by other migrations than this binary's (different: {}), and can't be upgraded: \
         run `agent-authority reset`, which removes a development server's data; if the database is in \
         DATABASE_URL, replace it by an empty one",
        login.place(),
        numbers(&different)
    )))
}

/// Returns the versions of this binary's migrations, and the SHA-256 of their texts.
fn columns() -> (Vec<&'static str>, Vec<String>) {
    let digest = |text: &str| hex(&sha256(text.as_bytes()));
    MIGRATIONS.iter().map(|migration| (migration.version, digest(migration.sql))).unzip()
}
