//! The checkpoints that left the service, as a sink of audit streams keeps them.
//!
//! A node that has lost its folder, or that is new, knows no checkpoint but those of the database, which may
//! have been restored to an earlier state. So it reads the last one that left before it signs for the first
//! time. From then on it remembers what is signed (`witness.rs`, `follow.rs`).

use std::{collections::HashMap, sync::Arc};

use authority_core::keys::Keys;
use authority_evidence::log::note::{Checkpoint, SignedCheckpoint};
use authority_ids::TenantId;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::Error;

/// Reads the last checkpoints of a tenant's log that left the service, as signed notes. The error says why
/// they cannot be read.
pub type ReadElsewhere =
    Arc<dyn Fn(TenantId) -> BoxFuture<'static, Result<Vec<String>, String>> + Send + Sync>;

pub(super) struct Elsewhere {
    read: ReadElsewhere,
    keys: Keys,
    /// Of tenants whose logs this node has signed.
    known: Mutex<HashMap<TenantId, Arc<[Checkpoint]>>>,
}

impl Elsewhere {
    pub(super) fn new(read: ReadElsewhere, keys: Keys) -> Self {
        Self { read, keys, known: Mutex::default() }
    }

    /// The checkpoints that a log must continue. They are read once.
    ///
    /// # Errors
    /// They cannot be read: then nothing may be signed.
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

    /// The note's checkpoint, if this service signed it: whoever may write to the sink must not be able to
    /// start epochs.
    fn genuine(&self, tenant_id: &TenantId, note: &str) -> Option<Checkpoint> {
        let Ok(note) = SignedCheckpoint::parse(note) else {
            tracing::warn!(tenant = %tenant_id, "a checkpoint kept elsewhere cannot be read");
            return None;
        };
        let origin = &note.checkpoint.origin;
        let is_signed = self.keys.log_key(&note).is_some();
        if !is_signed {
            tracing::warn!(
                tenant = %tenant_id,
                origin,
                "a checkpoint kept elsewhere is not signed by this service"
            );
        }
        is_signed.then_some(note.checkpoint)
    }
}
