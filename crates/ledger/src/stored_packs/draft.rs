//! Rebuilds a pack and checks it against its log.

use std::collections::HashMap;

use authority_crypto::sha256;
use authority_evidence::{
    log::{
        note::Checkpoint,
        proof::InclusionProof,
        tree::{Hash, NodeId, inclusion_nodes, inclusion_path, leaf_hash},
        verify::verify_inclusion,
    },
    pack::{self, Sealing},
};
use authority_ids::TenantId;

use super::{row::PackRow, signed::Signed, stored_pack::StoredPack};
use crate::{log_nodes::Subtree, log_origin::epoch_of};

/// A pack before its log's nodes are known.
pub(super) struct Draft<'a> {
    row: &'a PackRow,
    /// The index of the pack's log in the list of logs to read.
    log: usize,
    leaf: Vec<u8>,
    index: u64,
    note: &'a str,
    checkpoint: Checkpoint,
}

impl<'a> Draft<'a> {
    /// # Errors
    /// Returns the name of the altered part.
    pub(super) fn of(
        row: &'a PackRow,
        log: usize,
        signed: &mut Signed<'_>,
    ) -> Result<Self, &'static str> {
        let decision = row.decision.as_ref().ok_or("record")?;
        let stored = row.checkpoint.as_ref().ok_or("log")?;
        let checkpoint = of_its_log(row, &stored.note, signed)?;
        if u64::try_from(row.tree_size) != Ok(checkpoint.size) {
            return Err("log");
        }
        let leaf = pack::leaf(&Sealing {
            decision_id: &row.decision_id,
            record: &decision.record,
            kid: &decision.kid,
            signature: &decision.signature,
            sealed_at: row.sealed_at,
            issuer: &stored.issuer,
        });
        Ok(Self {
            row,
            log,
            leaf: leaf.map_err(|_| "record")?,
            index: row.log_index.try_into().map_err(|_| "log")?,
            note: &stored.note,
            checkpoint,
        })
    }

    /// Returns the nodes that the pack needs: its own node, and the nodes of its path to the root.
    pub(super) fn places(&self) -> Vec<Subtree> {
        let path = inclusion_nodes(self.index, self.checkpoint.size).into_iter();
        let nodes = path.chain([NodeId { level: 0, index: self.index }]);
        nodes.map(|node| (self.log, node)).collect()
    }

    /// Returns the pack as it was sealed.
    ///
    /// # Errors
    /// Returns the name of the altered part.
    pub(super) fn pack(self, nodes: &HashMap<Subtree, Hash>) -> Result<StoredPack, &'static str> {
        let Self { row, log, leaf, index, note, checkpoint: Checkpoint { origin, size, root } } =
            self;
        let lookup = |node| nodes.get(&(log, node)).copied();
        let hash = leaf_hash(&leaf);
        let path = inclusion_path(index, size, lookup).ok_or("log")?;
        let is_the_leaf = lookup(NodeId { level: 0, index }) == Some(hash);
        let is_signed = verify_inclusion(&hash, index, size, &path, &root);
        match (is_the_leaf, is_signed) {
            (true, true) => {}
            (false, false) if is_recorded(row) => return Err("pack"),
            (false, false) => return Err("record"),
            // If exactly one check fails, the leaf is unchanged and the log was altered.
            (true, false) | (false, true) => return Err("log"),
        }
        let proof = InclusionProof { index, path, checkpoint_note: note.to_owned() }.write();
        let decision_id = row.decision_id.clone();
        Ok(StoredPack { decision_id, origin, index: row.log_index, leaf, proof })
    }
}

/// Returns the checkpoint of a note that this service signed for the row's log.
fn of_its_log(
    row: &PackRow,
    note: &str,
    signed: &mut Signed<'_>,
) -> Result<Checkpoint, &'static str> {
    let checkpoint = signed.checkpoint(note).ok_or("log")?;
    let tenant_id = TenantId::parse(&row.tenant_id).map_err(|_| "log")?;
    match epoch_of(&checkpoint.origin, &tenant_id) {
        Some(epoch) if epoch == row.epoch => Ok(checkpoint),
        _ => Err("log"),
    }
}

/// Whether the decision's id, which ends with the record's digest, matches the record.
fn is_recorded(row: &PackRow) -> bool {
    let digest = row.decision.as_ref().map(|decision| hex::encode(sha256(&decision.record)));
    let hash = row.decision_id.rsplit(':').next().unwrap_or_default();
    let end = hash.get(12..).unwrap_or_default();
    !end.is_empty() && digest.is_some_and(|digest| digest.starts_with(end))
}
