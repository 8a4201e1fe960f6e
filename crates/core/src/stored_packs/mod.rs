//! Stored evidence packs, one or a page of them, byte for byte as they were first returned.
//!
//! A pack's row (`row.rs`) says where in its log it is. The leaf is written again from the decision, and the proof from
//! the tree and the checkpoint as of sealing (`draft.rs`); both are checked against the log, so that rows that were
//! altered give no pack. Rows from before migration 49 have the leaf and the proof themselves, which are checked as
//! well. A checkpoint counts if a key of this service signed it (`signed.rs`).

mod draft;
mod row;
mod signed;

use std::collections::{HashMap, HashSet};

use authority_evidence::{Error, pack};
use authority_ids::TenantId;
use diesel::QueryResult;

use crate::{
    keys::Keys,
    log_nodes::{self, Place},
    store::Db,
};
use draft::Draft;
use row::Row;
use signed::Signed;

/// A pack in its parts.
#[derive(Clone, Debug)]
pub struct StoredPack {
    pub decision_id: String,
    /// The log's.
    pub origin: String,
    /// In the log, from 0.
    pub index: i64,
    /// The pack without its place in the log, RFC 8785.
    pub leaf: Vec<u8>,
    /// C2SP tlog-proof, as of sealing.
    pub proof: String,
}

impl StoredPack {
    /// The pack, RFC 8785.
    ///
    /// # Errors
    /// The leaf is no leaf: it was altered.
    pub fn text(self) -> Result<String, Error> {
        pack::stored(&self.leaf, self.origin, self.index, self.proof)
    }
}

/// What is stored of a sealed decision is not what was sealed: there is no pack of it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{decision_id}` has no pack: its {part} is not as it was sealed")]
pub struct Altered {
    pub decision_id: String,
    /// `record`; `pack`, if another member of the leaf differs; or `log`.
    pub part: &'static str,
}

/// The packs of those of these decisions that are sealed, by decision; only of this tenant if one is given. What was
/// altered is logged.
pub async fn page(
    db: &mut Db,
    keys: &Keys,
    within: Option<&TenantId>,
    ids: impl IntoIterator<Item = &str>,
) -> QueryResult<HashMap<String, Result<StoredPack, Altered>>> {
    let rows = Row::load(db, within, ids.into_iter().collect()).await?;
    let logs: HashSet<_> = rows.iter().map(Row::log).collect();
    let logs: Vec<_> = logs.into_iter().collect();
    let numbers: HashMap<_, usize> = logs.iter().enumerate().map(|(at, log)| (*log, at)).collect();
    let mut signed = Signed::by(keys);
    let drafts: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row, Draft::of(row, *numbers.get(&row.log())?, &mut signed))))
        .collect();
    let made = drafts.iter().filter_map(|(_, draft)| draft.as_ref().ok());
    let wanted: HashSet<Place> = made.flat_map(Draft::places).collect();
    let wanted: Vec<Place> = wanted.into_iter().collect();
    let nodes = log_nodes::of_logs(db, &logs, &wanted).await?;
    let packs = drafts.into_iter().map(|(row, draft)| {
        let pack = draft.and_then(|draft| draft.pack(&nodes)).map_err(|part| {
            let altered = Altered { decision_id: row.decision_id.clone(), part };
            tracing::error!(tenant = row.tenant_id, error = %altered, "evidence was altered");
            altered
        });
        (row.decision_id.clone(), pack)
    });
    Ok(packs.collect())
}

/// The pack of a decision, if it is sealed, and of this tenant if one is given.
pub async fn one(
    db: &mut Db,
    keys: &Keys,
    within: Option<&TenantId>,
    decision_id: &str,
) -> QueryResult<Option<Result<StoredPack, Altered>>> {
    Ok(page(db, keys, within, [decision_id]).await?.remove(decision_id))
}
