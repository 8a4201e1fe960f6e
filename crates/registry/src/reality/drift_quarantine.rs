//! The quarantine of a drift event's action and actor.

use authority_ids::RecordId;
use authority_model::{
    proto::{reality::DriftEvent, registry::Quarantine},
    state::QuarantineState,
};

use crate::flow::prelude::*;

/// Starts a quarantine. If the event's earlier quarantine was released by other means, a new
/// quarantine may be started.
pub(super) async fn begin(
    db: &mut Db,
    event: &DriftEvent,
    actor: &str,
    reason: Option<&str>,
) -> Result<String, Error> {
    if active(db, event).await?.is_some() {
        return Err(Error::NotAllowed("the drift is already quarantined".to_owned()));
    }
    let subject = event.actor_entity_id.as_ref().or(event.subject_id.as_ref());
    let reason = reason.filter(|reason| !reason.is_empty());
    let mut quarantine = Quarantine {
        tenant_id: Some(event.tenant_id.clone()),
        subject_id: subject.cloned(),
        action: Some(event.action.clone()),
        reason: reason.map_or_else(|| format!("drift {}", event.id), str::to_owned),
        ..Quarantine::default()
    };
    let id = RecordId::new(Quarantine::KIND, new_id()).into();
    quarantine.stamp_created(id, actor.to_owned());
    Ok(Quarantine::insert(db, &quarantine).await?.id)
}

/// Releases the quarantine if it is still active.
pub(super) async fn end(db: &mut Db, event: &DriftEvent, actor: &str) -> Result<(), Error> {
    if let Some(quarantine) = active(db, event).await? {
        Quarantine::lift(db, &quarantine, actor, None).await?;
    }
    Ok(())
}

async fn active(db: &mut Db, event: &DriftEvent) -> Result<Option<Quarantine>, Error> {
    let Some(id) = &event.quarantine_id else { return Ok(None) };
    let found = Quarantine::by_id_for_update(db, None, id).await.optional()?;
    Ok(found.filter(|found| found.known_state() == Some(QuarantineState::Active)))
}
