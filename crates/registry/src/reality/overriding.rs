//! Overrides: people let actions continue despite findings. An override lifts exactly the findings
//! of one run.

use authority_decision::{
    levels::RuntimeEffect,
    reality::{CheckedState, DriftType, Lifted},
};
use authority_graph::Maker;
use authority_model::{
    proto::reality::{CheckFinding, CheckOverride, CouplingCheck, DriftEvent},
    schema::{
        reality_coupling_checks as checks, reality_heads as heads, reality_overrides as overrides,
        stable_drift_events as drifts,
    },
    state::DriftEventStatus,
    wire::Time,
};
use authority_store as store;

use super::assumed::ENGINE;
use crate::flow::prelude::*;

pub(super) const PENDING: &str = "pending";
pub(super) const IN_FORCE: &str = "in_force";
const ENDED: &str = "ended";

/// Returns the checks that have an override in force.
pub(super) async fn in_force(db: &mut Db, checks: Vec<String>) -> Result<Vec<String>, Error> {
    let rows = overrides::table.filter(overrides::id.eq_any(checks)).select(overrides::id);
    Ok(rows.load(db).await?)
}

/// Marks an override as ended if its time is over or a newer snapshot ended it.
pub(super) fn show(check: &mut CouplingCheck, in_force: &[String], now: Time) {
    let Some(by) = &mut check.r#override else { return };
    let is_gone = by.state == IN_FORCE && !in_force.contains(&check.id);
    if is_gone || by.until.is_none_or(|until| until <= now) {
        ENDED.clone_into(&mut by.state);
    }
}

/// Ends the override of a check, if there is one.
pub(super) async fn end(db: &mut Db, check: &CouplingCheck) -> Result<(), Error> {
    let Some(by) = &check.r#override else { return Ok(()) };
    diesel::delete(overrides::table.find(&check.id))
        .filter(overrides::tenant_id.eq(&check.tenant_id))
        .execute(db)
        .await?;
    if by.state != ENDED {
        let ended = CheckOverride { state: ENDED.to_owned(), ..by.clone() };
        diesel::update(checks::table.find(&check.id))
            .filter(checks::tenant_id.eq(&check.tenant_id))
            .set(checks::override_.eq(ended))
            .execute(db)
            .await?;
    }
    Ok(())
}

/// The findings that an override lifts.
pub(super) struct Lifting {
    pub(super) lifts: Vec<Lifted>,
    /// The strongest effect among the findings.
    pub(super) effect: RuntimeEffect,
}

/// Returns the last run's findings that hold or refuse actions. They concern anchors and the drift
/// events that the run opened.
///
/// # Errors
/// An anchor has a newer snapshot, which has not been reviewed.
pub(super) async fn lifted(db: &mut Db, check: &CouplingCheck) -> Result<Lifting, Error> {
    let effect = |word: &str| RuntimeEffect::from_word(word).unwrap_or(RuntimeEffect::Deny);
    let mut strongest = effect(&check.runtime_effect);
    let mut lifts: Vec<Lifted> = Vec::new();
    for finding in &check.findings {
        lifts.extend(finding.drift_types.iter().map(|drift_type| Lifted {
            source_id: finding.anchor_id.as_str().into(),
            drift_type: drift_type.clone(),
            found: vec![found(finding)],
        }));
    }
    let types: Vec<String> = lifts.iter().map(|lifted| lifted.drift_type.clone()).collect();
    let events: Vec<DriftEvent> = drifts::table
        .filter(drifts::tenant_id.eq(&check.tenant_id).and(drifts::check_id.eq(&check.id)))
        .filter(drifts::status.ne(DriftEventStatus::Resolved))
        .filter(drifts::result_source.eq(ENGINE))
        .filter(drifts::drift_type.eq_any(types))
        .order(drifts::id)
        .select(DriftEvent::as_select())
        .load(db)
        .await?;
    for event in events {
        let word = event.recommended_runtime_effect.as_deref().unwrap_or_default();
        strongest = strongest.max(effect(word));
        let is_of = |finding: &&CheckFinding| event.anchors_implicated.contains(&finding.anchor_id);
        lifts.push(Lifted {
            source_id: event.id.as_str().into(),
            drift_type: event.drift_type.clone(),
            found: check.findings.iter().filter(is_of).map(found).collect(),
        });
    }
    let lifting = Lifting { lifts, effect: strongest };
    lifting.lock(db, &check.tenant_id).await?;
    Ok(lifting)
}

fn found(finding: &CheckFinding) -> CheckedState {
    CheckedState {
        anchor_id: finding.anchor_id.as_str().into(),
        snapshot_id: finding.snapshot_id.as_deref().map(Into::into),
        contested: finding
            .drift_types
            .iter()
            .any(|found| *found == DriftType::CrossSystemConsensusDrift.to_string()),
    }
}

impl Lifting {
    /// Locks the anchors' newest snapshots until the transaction ends. Fails if they have changed.
    async fn lock(&self, db: &mut Db, tenant: &str) -> Result<(), Error> {
        let found: Vec<&CheckedState> =
            self.lifts.iter().flat_map(|lifted| &lifted.found).collect();
        let ids: Vec<&str> = found.iter().map(|found| found.anchor_id.as_str()).collect();
        let now: Vec<(String, Option<String>, bool)> = heads::table
            .filter(heads::tenant_id.eq(tenant).and(heads::id.eq_any(ids)))
            .order(heads::id)
            .select((heads::id, heads::snapshot_id, heads::contested))
            .for_share()
            .load(db)
            .await?;
        for found in found {
            let now = now.iter().find(|(id, ..)| found.anchor_id == **id);
            let present =
                now.map_or((None, false), |(_, newest, disputed)| (newest.as_deref(), *disputed));
            if present != (found.snapshot_id.as_deref(), found.contested) {
                let id = &found.anchor_id;
                let text = format!(
                    "the newest snapshot of `{id}` has changed since the run; run the check again"
                );
                return Err(Error::NotAllowed(text));
            }
        }
        Ok(())
    }
}

/// Puts an override into force.
pub(super) async fn begin(
    db: &mut Db,
    check: &CouplingCheck,
    lifts: &[Lifted],
    makers: &[Maker],
    until: Time,
) -> Result<(), Error> {
    let broken = |error: serde_json::Error| Error::Store(store::Error::Internal(error.to_string()));
    let lifts = serde_json::to_value(lifts).map_err(broken)?;
    let makers = serde_json::to_value(makers).map_err(broken)?;
    let actor = check.actor_entity_id.as_ref().or(check.subject_id.as_ref());
    diesel::insert_into(overrides::table)
        .values((
            overrides::id.eq(&check.id),
            overrides::tenant_id.eq(&check.tenant_id),
            overrides::action.eq(&check.action),
            overrides::actor_id.eq(actor),
            overrides::until.eq(until),
            overrides::lifts.eq(lifts),
            overrides::makers.eq(makers),
        ))
        .execute(db)
        .await?;
    Ok(())
}
