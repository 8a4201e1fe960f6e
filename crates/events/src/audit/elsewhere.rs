//! The checkpoints that audit streams have sent outside the service.

use std::sync::Arc;

use authority_ids::TenantId;
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};
use diesel::{QueryableByName, sql_types::Text};
use serde_json::Value;

use super::{nats::Nats, sink::checkpoint_subject};

/// The subjects of a tenant's streams. Sealed streams are included, because their checkpoints are
/// still in NATS.
const SUBJECTS: &str = "SELECT DISTINCT target AS subject FROM audit_streams \
     WHERE tenant_id = $1 AND sink = 'nats' AND target IS NOT NULL";

#[derive(QueryableByName)]
struct Target {
    #[diesel(sql_type = Text)]
    subject: String,
}

/// Returns the last checkpoint of the tenant's log from each NATS subject.
///
/// The checkpoints are signed notes. Subjects without a checkpoint are left out.
///
/// # Errors
/// NATS or the database cannot be read.
pub async fn checkpoints_elsewhere(
    store: &Store,
    nats: &Arc<Nats>,
    tenant_id: &TenantId,
) -> Result<Vec<String>, String> {
    if !nats.is_configured() {
        return Ok(Vec::new());
    }
    let id = tenant_id.to_string();
    let read = store.read_tx(&Scope::service(), async move |db: &mut Db| {
        let targets = diesel::sql_query(SUBJECTS).bind::<Text, _>(id);
        Ok::<_, store::Error>(targets.load::<Target>(db).await?)
    });
    let targets = read.await.map_err(|error| error.to_string())?;
    let mut notes = Vec::new();
    for Target { subject } in targets {
        let below = checkpoint_subject(&subject, tenant_id);
        let last = nats.last(&below).await.map_err(|error| error.to_string())?;
        notes.extend(last.as_deref().and_then(note));
    }
    Ok(notes)
}

/// Returns the note in a message. Other programs may also write to the subject; their messages are
/// ignored.
fn note(message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).ok()?;
    message["checkpoint"].as_str().map(str::to_owned)
}
