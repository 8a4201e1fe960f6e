//! The drift events of a run, one for each type of drift. A later run updates the unresolved
//! events.

use std::collections::BTreeMap;

use authority_decision::{
    levels::RuntimeEffect,
    reality::{CouplingResult, Observed},
};
use authority_ids::RecordId;
use authority_model::{
    proto::reality::{CheckFinding, CouplingCheck, DriftEvent},
    schema::stable_drift_events as drifts,
    state::DriftEventStatus,
    wire::{Json, Time},
};
use serde_json::{Map, Value, json};

use super::{
    assumed::{ENGINE, assumptions},
    freshness::moment,
};
use crate::flow::prelude::*;

/// The name of the kind in IDs of drift events.
pub(super) const ID_KIND: &str = "drift_event";

/// The findings of a run for one type of drift.
struct DriftFindings<'a> {
    drift_type: &'a str,
    findings: Vec<&'a CheckFinding>,
}

/// Stores findings with the result `revalidation_required` or worse. Returns the ID of the first
/// event.
pub(super) async fn keep(
    db: &mut Db,
    check: &CouplingCheck,
    findings: &[CheckFinding],
    now: Time,
    actor: &str,
) -> Result<Option<String>, Error> {
    let mut kinds: BTreeMap<&str, Vec<&CheckFinding>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| is_drift(finding)) {
        if let Some(drift_type) = &finding.drift_type {
            kinds.entry(drift_type).or_default().push(finding);
        }
    }
    let open: Vec<DriftEvent> = drifts::table
        .filter(drifts::tenant_id.eq(&check.tenant_id).and(drifts::check_id.eq(&check.id)))
        .filter(drifts::status.ne(DriftEventStatus::Resolved))
        .filter(drifts::result_source.eq(ENGINE))
        .order((drifts::created_at, drifts::id))
        .for_update()
        .select(DriftEvent::as_select())
        .load(db)
        .await?;
    let mut first = None;
    for (drift_type, findings) in kinds {
        let found = DriftFindings { drift_type, findings };
        let known = open.iter().find(|event| event.drift_type == drift_type);
        let id = match known {
            Some(event) => update(db, check, event, &found, now).await?,
            None => insert(db, check, &found, now, actor).await?,
        };
        first.get_or_insert(id);
    }
    Ok(first)
}

fn is_drift(finding: &CheckFinding) -> bool {
    let result = CouplingResult::from_word(&finding.coupling_result);
    result.is_none_or(|result| result >= CouplingResult::RevalidationRequired)
}

impl DriftFindings<'_> {
    fn anchors(&self) -> Vec<String> {
        self.findings.iter().map(|finding| finding.anchor_id.clone()).collect()
    }

    fn result(&self) -> CouplingResult {
        let each = self.findings.iter();
        let results =
            each.filter_map(|finding| CouplingResult::from_word(&finding.coupling_result));
        results.max().unwrap_or(CouplingResult::Unknown)
    }

    fn severity(&self) -> String {
        // A result that counts as drift always has a severity.
        self.result().severity().map(|severity| severity.to_string()).unwrap_or_default()
    }

    fn effect(&self) -> RuntimeEffect {
        let each = self.findings.iter();
        let effects = each.filter_map(|finding| RuntimeEffect::from_word(&finding.runtime_effect));
        effects.max().unwrap_or(RuntimeEffect::RequireHumanReview)
    }

    /// The content of each anchor's newest snapshot.
    fn observed(&self) -> Json {
        let each = self.findings.iter().map(|finding| {
            let seen = json!({
                "snapshot_id": finding.snapshot_id, "content_hash": finding.content_hash,
                "sampled_at": finding.sampled_at,
            });
            (finding.anchor_id.clone(), seen)
        });
        Json(each.collect::<Map<String, Value>>())
    }

    /// Returns the snapshot time and maximum age of each anchor, if all findings are about age.
    /// Newer snapshots end such drift.
    fn until_fresh(&self, check: &CouplingCheck) -> Option<Value> {
        let is_of_age = self.findings.iter().all(|finding| finding.of_age);
        let assumed = assumptions(check);
        let most = |anchor_id: &str| {
            let own = assumed.iter().filter(|assumed| assumed.anchor_id == *anchor_id);
            own.filter_map(|assumed| assumed.max_age_seconds).min()
        };
        let seen = self.findings.iter().map(|finding| Observed {
            anchor_id: finding.anchor_id.as_str().into(),
            sampled_at: finding.sampled_at.map(moment),
            max_age_seconds: most(&finding.anchor_id),
        });
        is_of_age.then(|| serde_json::to_value(seen.collect::<Vec<_>>()).unwrap_or_default())
    }
}

async fn insert(
    db: &mut Db,
    check: &CouplingCheck,
    found: &DriftFindings<'_>,
    now: Time,
    actor: &str,
) -> Result<String, Error> {
    let mut event = DriftEvent {
        tenant_id: check.tenant_id.clone(),
        check_id: check.id.clone(),
        action_id: check.action_id.clone(),
        action: check.action.clone(),
        subject_id: check.subject_id.clone(),
        drift_type: found.drift_type.to_owned(),
        severity: found.severity(),
        actor_entity_id: check.actor_entity_id.clone(),
        principal_entity_id: check.principal_entity_id.clone(),
        detected_at: Some(now),
        anchors_implicated: found.anchors(),
        observed_state: Some(found.observed()),
        reason_codes: vec![found.drift_type.to_owned()],
        recommended_runtime_effect: Some(found.effect().to_string()),
        result_source: ENGINE.to_owned(),
        ..DriftEvent::default()
    };
    event.stamp_created(RecordId::new(ID_KIND, new_id()).into(), actor.to_owned());
    diesel::insert_into(drifts::table)
        .values((&event, drifts::until_fresh.eq(found.until_fresh(check))))
        .execute(db)
        .await?;
    Ok(event.id)
}

/// Updates an event. If the anchors or their contents differ, this is a new finding: the event's
/// `detected_at` is reset and the event must be reviewed again.
async fn update(
    db: &mut Db,
    check: &CouplingCheck,
    event: &DriftEvent,
    found: &DriftFindings<'_>,
    now: Time,
) -> Result<String, Error> {
    let observed = found.observed();
    let is_same = event.observed_state.as_ref() == Some(&observed);
    let escalated = event.known_state() == Some(DriftEventStatus::Escalated);
    let least = if escalated { RuntimeEffect::RequireHumanReview } else { RuntimeEffect::Continue };
    diesel::update(drifts::table.find(&event.id))
        .filter(drifts::tenant_id.eq(&event.tenant_id))
        .set((
            drifts::severity.eq(found.severity()),
            drifts::anchors_implicated.eq(found.anchors()),
            drifts::observed_state.eq(observed),
            drifts::recommended_runtime_effect.eq(found.effect().max(least).to_string()),
            drifts::until_fresh.eq(found.until_fresh(check).filter(|_| !escalated)),
            drifts::detected_at.eq(event.detected_at.filter(|_| is_same).unwrap_or(now)),
            drifts::updated_at.eq(clock_timestamp()),
        ))
        .execute(db)
        .await?;
    Ok(event.id.clone())
}
