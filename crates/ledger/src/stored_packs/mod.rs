//! Reads stored evidence packs, one or a page of them, byte for byte as first returned.
//!
//! A pack's row (`row.rs`) contains the pack's index in its log. The leaf is rebuilt from the
//! decision, and the proof from the tree and the checkpoint at the time of sealing (`draft.rs`).
//! Both are checked against the log: altered rows do not produce a pack. A checkpoint counts if a key
//! of this service signed it (`signed.rs`).

mod draft;
mod row;
mod signed;
mod stored_pack;

use std::collections::{HashMap, HashSet};

use authority_ids::{DecisionId, DecisionRef, TenantId};
use diesel::QueryResult;

use crate::log_nodes::{self, Subtree};
use authority_keys::Keys;
use authority_store::Db;
use draft::Draft;
use row::PackRow;
use signed::Signed;
pub use stored_pack::StoredPack;

/// The stored data of a sealed decision differs from the sealed data. It has no valid pack.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{decision_id}` has no valid pack: its {part} was altered after sealing")]
pub struct Altered {
    pub decision_id: DecisionRef,
    /// The altered part: `record`; `pack` if another field of the leaf differs; or `log`.
    pub part: &'static str,
}

/// Reads the packs of the sealed decisions among `ids`, by decision.
///
/// If a tenant is given, only its packs are read. Alterations are logged.
pub async fn page(
    db: &mut Db,
    keys: &Keys,
    within: Option<&TenantId>,
    ids: impl IntoIterator<Item = &str>,
) -> QueryResult<HashMap<DecisionRef, Result<StoredPack, Altered>>> {
    let rows = PackRow::load(db, within, ids.into_iter().collect()).await?;
    let logs: HashSet<_> = rows.iter().map(PackRow::log).collect();
    let logs: Vec<_> = logs.into_iter().collect();
    let numbers: HashMap<_, usize> = logs.iter().enumerate().map(|(at, log)| (*log, at)).collect();
    let mut signed = Signed::by(keys);
    let drafts: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row, Draft::of(row, *numbers.get(&row.log())?, &mut signed))))
        .collect();
    let made = drafts.iter().filter_map(|(_, draft)| draft.as_ref().ok());
    let wanted: HashSet<Subtree> = made.flat_map(Draft::places).collect();
    let wanted: Vec<Subtree> = wanted.into_iter().collect();
    let nodes = log_nodes::of_logs(db, &logs, &wanted).await?;
    let packs = drafts.into_iter().map(|(row, draft)| {
        let pack = draft.and_then(|draft| draft.pack(&nodes)).map_err(|part| {
            let altered = Altered { decision_id: row.decision_id.clone(), part };
            tracing::error!(error = %altered, tenant.id = row.tenant_id.as_str(), "found altered evidence");
            altered
        });
        (row.decision_id.clone(), pack)
    });
    Ok(packs.collect())
}

/// Reads the pack of a decision, if it is sealed. If a tenant is given, only its packs are found.
pub async fn one(
    db: &mut Db,
    keys: &Keys,
    within: Option<&TenantId>,
    decision_id: &DecisionId,
) -> QueryResult<Option<Result<StoredPack, Altered>>> {
    Ok(page(db, keys, within, [decision_id.as_str()]).await?.remove(decision_id.as_str()))
}
