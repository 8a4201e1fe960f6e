//! The rows from which a pack is rebuilt.

use authority_ids::{DecisionRef, TenantId, TenantRef};
use authority_model::stored_record::StoredRecord;
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    prelude::*,
    sql_types::{Array, BigInt, Bytea, Integer, Nullable, Text, Timestamptz},
};

use authority_store::{Db, RunQueryDsl, prepared};

/// Selects a pack's row with the rows of its decision and of its checkpoint at the time of sealing.
/// Each id is looked up in its own partition. `ARRAY(…)` hides the number of ids, to make a
/// connection keep one plan: planning with all partitions takes several times as long as reading a
/// pack.
const PACKS: &str = "SELECT p.decision_id, p.tenant_id, p.epoch, p.log_index, p.tree_size, p.sealed_at, \
       d.record, d.kid, d.signature, c.note, c.issuer \
     FROM UNNEST(ARRAY(SELECT UNNEST($1))) AS wanted (id) \
     JOIN evidence_packs p ON p.decision_id = wanted.id \
     LEFT JOIN decisions d ON d.id = wanted.id AND d.tenant_id = p.tenant_id \
     LEFT JOIN log_checkpoints c \
       ON c.tenant_id = p.tenant_id AND c.epoch = p.epoch AND c.size = p.tree_size \
     WHERE $2 IS NULL OR p.tenant_id = $2";

#[derive(QueryableByName)]
pub(super) struct PackRow {
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) decision_id: DecisionRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) tenant_id: TenantRef,
    #[diesel(sql_type = Integer)]
    pub(super) epoch: i32,
    #[diesel(sql_type = BigInt)]
    pub(super) log_index: i64,
    #[diesel(sql_type = BigInt)]
    pub(super) tree_size: i64,
    #[diesel(sql_type = Timestamptz)]
    pub(super) sealed_at: DateTime<Utc>,
    #[diesel(embed)]
    pub(super) decision: Option<Decision>,
    #[diesel(embed)]
    pub(super) checkpoint: Option<Checkpoint>,
}

#[derive(QueryableByName)]
pub(super) struct Decision {
    #[diesel(sql_type = StoredRecord)]
    pub(super) record: Vec<u8>,
    #[diesel(sql_type = Text)]
    pub(super) kid: String,
    #[diesel(sql_type = Bytea)]
    pub(super) signature: Vec<u8>,
}

#[derive(QueryableByName)]
pub(super) struct Checkpoint {
    /// A signed note.
    #[diesel(sql_type = Text)]
    pub(super) note: String,
    #[diesel(sql_type = Text)]
    pub(super) issuer: String,
}

impl PackRow {
    pub(super) async fn load(
        db: &mut Db,
        within: Option<&TenantId>,
        ids: Vec<&str>,
    ) -> QueryResult<Vec<Self>> {
        prepared(PACKS)
            .bind::<Array<Text>, _>(ids)
            .bind::<Nullable<Text>, _>(within.map(TenantId::as_str))
            .load(db)
            .await
    }

    /// Returns the row's log: the tenant and the epoch.
    pub(super) fn log(&self) -> (&str, i32) {
        (&self.tenant_id, self.epoch)
    }
}
