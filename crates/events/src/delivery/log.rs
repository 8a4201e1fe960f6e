//! The tenant's log of events, as cursors read it.

use authority_core::store::{Db, RunQueryDsl, prepared};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bytea, Nullable, Text},
};

/// An event of the log.
#[derive(QueryableByName)]
pub(super) struct Event {
    #[diesel(sql_type = Text)]
    pub(super) id: String,
    #[diesel(sql_type = BigInt)]
    pub(super) sequence: i64,
    #[diesel(sql_type = Text)]
    pub(super) event_type: String,
    #[diesel(sql_type = Bytea)]
    pub(super) body: Vec<u8>,
}

/// Reads up to `most` events after `sequence`, up to and including `until`.
///
/// If `types` is `None`, events of all types are read.
pub(super) async fn after(
    db: &mut Db,
    tenant_id: &str,
    sequence: i64,
    until: i64,
    types: Option<&[&str]>,
    most: i64,
) -> QueryResult<Vec<Event>> {
    prepared(
        "SELECT id, sequence, event_type, body FROM events \
         WHERE tenant_id = $1 AND sequence > $2 AND sequence <= $3 \
           AND ($4::text[] IS NULL OR event_type = ANY ($4)) ORDER BY sequence LIMIT $5",
    )
    .bind::<Text, _>(tenant_id)
    .bind::<BigInt, _>(sequence)
    .bind::<BigInt, _>(until)
    .bind::<Nullable<Array<Text>>, _>(types)
    .bind::<BigInt, _>(most)
    .load(db)
    .await
}
