//! Stored packs: the leaf, its place in the log, the proof.

use std::collections::HashMap;

use authority_ids::TenantId;
use authority_model::schema::evidence_packs;
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    prelude::*,
    sql_types::{Array, BigInt, Bool, Bytea, Integer, Text, Timestamptz},
};

use super::{Error, log::Log};
use authority_core::store::{Db, RunQueryDsl};
use authority_evidence::pack;

/// A stored pack.
#[derive(Queryable, Selectable)]
#[diesel(table_name = evidence_packs, check_for_backend(diesel::pg::Pg))]
pub(super) struct Row {
    pub(super) decision_id: String,
    pub(super) origin: String,
    pub(super) log_index: i64,
    pub(super) body: Vec<u8>,
    pub(super) proof: String,
}

impl Row {
    /// The pack, byte for byte as it was first returned.
    pub(super) fn pack(self) -> Result<String, Error> {
        Ok(pack::stored(&self.body, self.origin, self.log_index, self.proof)?)
    }
}

/// The existing packs of these decisions, by decision.
pub(super) async fn sealed(
    db: &mut Db,
    ids: impl Iterator<Item = &str>,
) -> QueryResult<HashMap<String, Row>> {
    let rows: Vec<Row> = evidence_packs::table
        .filter(evidence_packs::decision_id.eq_any(ids))
        .select(Row::as_select())
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.decision_id.clone(), row)).collect())
}

/// The pack of a decision, if it is sealed and of the tenant.
pub(super) async fn one(
    db: &mut Db,
    within: Option<&TenantId>,
    decision_id: &str,
) -> QueryResult<Option<Row>> {
    let mut query = evidence_packs::table
        .filter(evidence_packs::decision_id.eq(decision_id))
        .select(Row::as_select())
        .into_boxed();
    if let Some(tenant) = within {
        query = query.filter(evidence_packs::tenant_id.eq(tenant.as_str()));
    }
    query.first(db).await.optional()
}

/// Stores packs of the log's tenant; `automatic` ones nobody asked for.
pub(super) async fn insert(
    db: &mut Db,
    log: &Log<'_>,
    rows: &[Row],
    sealed_at: DateTime<Utc>,
    automatic: bool,
) -> QueryResult<()> {
    let decisions: Vec<&str> = rows.iter().map(|row| row.decision_id.as_str()).collect();
    let indices: Vec<i64> = rows.iter().map(|row| row.log_index).collect();
    let bodies: Vec<&[u8]> = rows.iter().map(|row| row.body.as_slice()).collect();
    let proofs: Vec<&str> = rows.iter().map(|row| row.proof.as_str()).collect();
    diesel::sql_query(
        "INSERT INTO evidence_packs \
         (tenant_id, epoch, origin, sealed_at, automatic, decision_id, log_index, body, proof) \
         SELECT $1, $2, $3, $4, $5, p.* FROM UNNEST($6, $7, $8, $9) AS p",
    )
    .bind::<Text, _>(log.tenant_id.as_str())
    .bind::<Integer, _>(log.epoch)
    .bind::<Text, _>(&log.origin)
    .bind::<Timestamptz, _>(sealed_at)
    .bind::<Bool, _>(automatic)
    .bind::<Array<Text>, _>(decisions)
    .bind::<Array<BigInt>, _>(indices)
    .bind::<Array<Bytea>, _>(bodies)
    .bind::<Array<Text>, _>(proofs)
    .execute(db)
    .await
    .map(drop)
}
