//! What the records of reality refer to: all of one tenant.

use authority_ids::DecisionId;
use authority_model::schema::{
    decisions, delegations, legal_entities, reality_anchors, reality_snapshots, stable_drift_events,
};
use serde_json::Value;

use super::super::prelude::*;

/// What an `action_id` stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) action: String,
    /// Of the decision that it names.
    pub(super) subject_id: Option<String>,
    /// The purpose of that decision, if it had one.
    pub(super) purpose: Option<String>,
}

/// The action, or the action and subject of the decision, that `action_id` names.
pub(super) async fn subject(
    db: &mut Db,
    kind: &str,
    tenant_id: &str,
    action_id: &str,
) -> Result<Subject, Error> {
    if !action_id.starts_with(DecisionId::PREFIX) {
        return Ok(Subject { action: action_id.to_owned(), ..Subject::default() });
    }
    let decision: Option<(String, String, Vec<u8>)> = decisions::table
        .filter(decisions::id.eq(action_id).and(decisions::tenant_id.eq(tenant_id)))
        .select((decisions::action, decisions::subject, decisions::record))
        .first(db)
        .await
        .optional()?;
    let unknown = || Error::unknown(&format!("{kind}.action_id"), action_id);
    let (action, subject_id, record) = decision.ok_or_else(unknown)?;
    let record: Value = serde_json::from_slice(&record).unwrap_or_default();
    let purpose = record["request"]["purpose"].as_str().map(str::to_owned);
    Ok(Subject { action, subject_id: Some(subject_id), purpose })
}

/// A principal that is not deleted, or a legal entity.
pub(super) async fn party(
    known: &mut Known<'_>,
    db: &mut Db,
    field: &str,
    id: Option<&str>,
) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    let entity: Option<String> = legal_entities::table
        .filter(legal_entities::id.eq(id).and(legal_entities::tenant_id.eq(known.tenant())))
        .for_key_share()
        .select(legal_entities::id)
        .first(db)
        .await
        .optional()?;
    if entity.is_some() { Ok(()) } else { known.principal(db, field, Some(id)).await }
}

/// Anchors that are not deleted.
pub(super) async fn anchors(
    known: &mut Known<'_>,
    db: &mut Db,
    field: &str,
    ids: &[String],
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let present: Vec<String> = reality_anchors::table
        .filter(reality_anchors::tenant_id.eq(known.tenant()))
        .filter(reality_anchors::id.eq_any(ids))
        .filter(reality_anchors::deleted_at.is_null())
        .select(reality_anchors::id)
        .load(db)
        .await?;
    known.compare_each(field, ids, &present);
    Ok(())
}

/// Snapshots, deleted ones too: a report may be by one of them.
pub(super) async fn snapshots(
    known: &mut Known<'_>,
    db: &mut Db,
    field: &str,
    ids: &[String],
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let present: Vec<String> = reality_snapshots::table
        .filter(reality_snapshots::tenant_id.eq(known.tenant()))
        .filter(reality_snapshots::id.eq_any(ids))
        .select(reality_snapshots::id)
        .load(db)
        .await?;
    known.compare_each(field, ids, &present);
    Ok(())
}

/// A delegation, whatever its state.
pub(super) async fn delegation(
    known: &mut Known<'_>,
    db: &mut Db,
    field: &str,
    id: Option<&String>,
) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    let present: Vec<String> = delegations::table
        .filter(delegations::tenant_id.eq(known.tenant()).and(delegations::id.eq(id)))
        .select(delegations::id)
        .load(db)
        .await?;
    known.compare(field, &[id], &present);
    Ok(())
}

/// A drift event that is not deleted.
pub(super) async fn drift(
    known: &mut Known<'_>,
    db: &mut Db,
    field: &str,
    id: Option<&String>,
) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    let present: Vec<String> = stable_drift_events::table
        .filter(stable_drift_events::tenant_id.eq(known.tenant()))
        .filter(stable_drift_events::id.eq(id))
        .filter(stable_drift_events::deleted_at.is_null())
        .select(stable_drift_events::id)
        .load(db)
        .await?;
    known.compare(field, &[id], &present);
    Ok(())
}
