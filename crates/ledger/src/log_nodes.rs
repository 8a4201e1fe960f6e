//! The stored hashes of the logs' trees.
//!
//! Adjacent subtrees that were completed together are stored in one row: the hash of subtree
//! `first + i` is the 32 bytes from `32 * i` on.

use std::collections::HashMap;

use authority_evidence::log::tree::{Hash, NodeId};
use authority_ids::TenantId;
use diesel::{
    QueryResult,
    prelude::*,
    sql_types::{Array, BigInt, Bytea, Integer, SmallInt, Text},
};

use authority_store::{Db, RunQueryDsl, prepared};

/// A subtree of a log, with the index of the log among several logs.
pub type Subtree = (usize, NodeId);

/// Reads the stored hashes of these subtrees of one log.
pub async fn of_log(
    db: &mut Db,
    tenant_id: &TenantId,
    epoch: i32,
    wanted: &[NodeId],
) -> QueryResult<HashMap<NodeId, Hash>> {
    let places: Vec<Subtree> = wanted.iter().map(|node| (0, *node)).collect();
    let found = of_logs(db, &[(tenant_id.as_str(), epoch)], &places).await?;
    Ok(found.into_iter().map(|((_, node), hash)| (node, hash)).collect())
}

/// Reads the stored hashes of subtrees in several logs. A log is identified by its tenant and
/// epoch.
pub async fn of_logs(
    db: &mut Db,
    logs: &[(&str, i32)],
    wanted: &[Subtree],
) -> QueryResult<HashMap<Subtree, Hash>> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let (tenants, epochs): (Vec<&str>, Vec<i32>) = logs.iter().copied().unzip();
    let log = wanted.iter().map(|(log, _)| i32::try_from(*log).unwrap_or(i32::MAX));
    let level = wanted.iter().map(|(_, node)| i16::from(node.level));
    let index = wanted.iter().map(|(_, node)| i64::try_from(node.index).unwrap_or(i64::MAX));
    // SQL arrays are indexed from 1.
    let rows: Vec<NodeRow> = prepared(
        "SELECT w.log, w.level, w.index, \
           substring(n.hashes FROM (32 * (w.index - n.first))::int + 1 FOR 32) AS hash \
         FROM UNNEST($3, $4, $5) AS w (log, level, index) CROSS JOIN LATERAL ( \
           SELECT first, hashes FROM log_nodes \
           WHERE tenant_id = $1[w.log + 1] AND epoch = $2[w.log + 1] \
             AND level = w.level AND first <= w.index \
           ORDER BY first DESC LIMIT 1) n \
         WHERE length(n.hashes) / 32 > w.index - n.first",
    )
    .bind::<Array<Text>, _>(tenants)
    .bind::<Array<Integer>, _>(epochs)
    .bind::<Array<Integer>, _>(log.collect::<Vec<_>>())
    .bind::<Array<SmallInt>, _>(level.collect::<Vec<_>>())
    .bind::<Array<BigInt>, _>(index.collect::<Vec<_>>())
    .load(db)
    .await?;
    Ok(rows.into_iter().filter_map(NodeRow::read).collect())
}

#[derive(QueryableByName)]
struct NodeRow {
    #[diesel(sql_type = Integer)]
    log: i32,
    #[diesel(sql_type = SmallInt)]
    level: i16,
    #[diesel(sql_type = BigInt)]
    index: i64,
    #[diesel(sql_type = Bytea)]
    hash: Vec<u8>,
}

impl NodeRow {
    fn read(self) -> Option<(Subtree, Hash)> {
        let node =
            NodeId { level: self.level.try_into().ok()?, index: self.index.try_into().ok()? };
        Some(((self.log.try_into().ok()?, node), self.hash.try_into().ok()?))
    }
}
