//! A session's row in the database, for the other files of this folder.

use std::collections::HashMap;

use authority_store::{self as store, Db, RunQueryDsl};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Binary, Bool},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The request of an approval that was shown in the session.
#[derive(Serialize, Deserialize)]
pub(super) struct Opened {
    /// The request's digest.
    pub(super) digest: String,
    /// When it was shown first, in microseconds since 1970.
    pub(super) at: i64,
}

/// The digest of each opened request, by the approval's id. Unreadable data counts as not opened.
pub(super) fn opened(stored: Value) -> HashMap<String, String> {
    let opened: HashMap<String, Opened> = serde_json::from_value(stored).unwrap_or_default();
    opened.into_iter().map(|(id, opened)| (id, opened.digest)).collect()
}

#[derive(QueryableByName)]
pub(super) struct Locked {
    #[diesel(sql_type = Binary)]
    pub(super) sealed_tokens: Vec<u8>,
    /// Whether a request has the turn to refresh the tokens.
    #[diesel(sql_type = Bool)]
    pub(super) is_refreshing: bool,
}

/// A session's tokens, locked until the transaction ends. All nodes use the database's clock.
pub(super) async fn locked(db: &mut Db, digest: &[u8; 32]) -> Result<Option<Locked>, store::Error> {
    let query = diesel::sql_query(
        "SELECT sealed_tokens, coalesce(refreshing_until > clock_timestamp(), false) AS is_refreshing \
         FROM console_sessions WHERE digest = $1 FOR UPDATE",
    );
    Ok(query.bind::<Binary, _>(digest.to_vec()).get_result(db).await.optional()?)
}
