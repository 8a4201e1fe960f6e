//! Checkpoints that audit streams have sent out, read back from a stream's sink.
//!
//! A node that is new or has lost its folder knows only the checkpoints of the database, which may
//! have been restored to an earlier state. Before a node signs for a log for the first time, it
//! therefore reads the last checkpoint that was sent out. From then on it remembers signed
//! checkpoints (`witness.rs`, `follow.rs`).

use std::{collections::HashMap, sync::Arc};

use authority_evidence::log::note::{Checkpoint, SignedCheckpoint};
use authority_ids::TenantId;
use authority_keys::Keys;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::Error;

/// Reads the last checkpoints of a tenant's log that were sent out, as signed notes.
///
/// The error states why they cannot be read.
pub type ReadElsewhere =
    Arc<dyn Fn(TenantId) -> BoxFuture<'static, Result<Vec<String>, String>> + Send + Sync>;

pub(super) struct Elsewhere {
    read: ReadElsewhere,
    keys: Keys,
    /// The checkpoints that were read, by tenant.
    known: Mutex<HashMap<TenantId, Arc<[Checkpoint]>>>,
}

impl Elsewhere {
    pub(super) fn new(read: ReadElsewhere, keys: Keys) -> Self {
        Self { read, keys, known: Mutex::default() }
    }

    /// Returns the checkpoints that a log must continue. They are read once for each tenant.
    ///
    /// # Errors
    /// The checkpoints cannot be read. The log must then not be signed.
    pub(super) async fn last(&self, tenant_id: &TenantId) -> Result<Arc<[Checkpoint]>, Error> {
        if let Some(known) = self.known.lock().get(tenant_id) {
            return Ok(Arc::clone(known));
        }
        let notes = (self.read)(tenant_id.clone()).await;
        let notes = notes.map_err(|why| Error::WitnessUnavailable(tenant_id.to_string(), why))?;
        let genuine = notes.iter().filter_map(|note| self.genuine(tenant_id, note));
        let genuine: Arc<[Checkpoint]> = genuine.collect();
        self.known.lock().insert(tenant_id.clone(), Arc::clone(&genuine));
        Ok(genuine)
    }

    /// Returns the note's checkpoint, if this service signed it.
    ///
    /// Without this check, anyone who can write to the sink could make the log start new epochs.
    fn genuine(&self, tenant_id: &TenantId, note: &str) -> Option<Checkpoint> {
        let Ok(note) = SignedCheckpoint::parse(note) else {
            tracing::warn!(tenant.id = %tenant_id, "failed to read a checkpoint kept elsewhere");
            return None;
        };
        let origin = &note.checkpoint.origin;
        let is_signed = self.keys.log_key(&note).is_some();
        if !is_signed {
            tracing::warn!(
                tenant.id = %tenant_id,
                origin,
                "ignored a checkpoint kept elsewhere that this service did not sign"
            );
        }
        is_signed.then_some(note.checkpoint)
    }
}
