//! Differences between the schema and the migrations: disabled triggers or row-level security, and
//! sequences behind their tables.

use diesel::{QueryableByName, sql_types::Text};

use super::{
    error::Error,
    pool::Store,
    query::RunQueryDsl,
    transaction::{Db, Scope},
};

/// The maximum number of faults to list. If every trigger is disabled, a full list would not help.
const MOST: usize = 5;

#[derive(QueryableByName)]
struct Fault {
    #[diesel(sql_type = Text)]
    text: String,
}

/// Reads the faults with their remedies, in the role that reads all tenants.
///
/// Returns `None` if the schema is sound.
pub(super) async fn read(db: &mut Db) -> Result<Option<String>, Error> {
    let query = diesel::sql_query("SELECT text FROM schema_faults() AS text");
    let faults: Vec<Fault> = query.load(db).await?;
    let mut texts: Vec<String> = faults.into_iter().map(|fault| fault.text).collect();
    let more = texts.len().saturating_sub(MOST);
    texts.truncate(MOST);
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    Ok(Some(texts.join("; ")).filter(|text| !text.is_empty()))
}

impl Store {
    /// Returns how the schema differs from the migrations, with remedies.
    ///
    /// Until the schema is repaired, the service's guarantees don't hold.
    ///
    /// # Errors
    /// The database is unavailable, or a migration is missing.
    pub async fn schema_faults(&self) -> Result<Option<String>, Error> {
        self.read_tx(&Scope::service(), async move |db: &mut Db| read(db).await).await
    }
}
