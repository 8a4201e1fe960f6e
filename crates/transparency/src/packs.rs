//! Writes the rows of packs: the place of each sealed decision in the log.

use authority_ledger::stored_packs::StoredPack;
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Bool, Integer, Text, Timestamptz},
};

use super::log::Log;

/// Stores the packs of leaves that were added to the log in this transaction.
///
/// `automatic` is set if the packs are sealed without a request.
pub(super) async fn insert(
    db: &mut Db,
    log: &Log<'_>,
    packs: &[StoredPack],
    sealed_at: DateTime<Utc>,
    automatic: bool,
) -> QueryResult<()> {
    let decisions: Vec<&str> = packs.iter().map(|pack| pack.decision_id.as_str()).collect();
    let indices: Vec<i64> = packs.iter().map(|pack| pack.index).collect();
    diesel::sql_query(
        "INSERT INTO evidence_packs \
         (tenant_id, epoch, tree_size, sealed_at, automatic, decision_id, log_index) \
         SELECT $1, $2, $3, $4, $5, p.* FROM UNNEST($6, $7) AS p",
    )
    .bind::<Text, _>(log.tenant_id.as_str())
    .bind::<Integer, _>(log.epoch)
    .bind::<BigInt, _>(log.size())
    .bind::<Timestamptz, _>(sealed_at)
    .bind::<Bool, _>(automatic)
    .bind::<Array<Text>, _>(decisions)
    .bind::<Array<BigInt>, _>(indices)
    .execute(db)
    .await
    .map(drop)
}
