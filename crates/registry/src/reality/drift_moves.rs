//! The actions that people take on drift. Each is stored on the event and can change the status.

use std::fmt::Write;

use authority_api::error::ApiError;
use authority_decision::{
    levels::RuntimeEffect,
    reality::{CouplingResult, Tolerated},
};
use authority_model::{
    proto::reality::{CheckFinding, CouplingCheck, DeleteDriftEventRequest, DriftAct, DriftEvent},
    record::{ByIdRequest, RpcRequest},
    schema::{reality_coupling_checks as checks, stable_drift_events as drifts},
    state::DriftEventStatus,
    validate::{Validate, Violation},
    wire::Time,
};
use serde_json::Value;

use super::{
    assumed::ENGINE, drift_quarantine as quarantine, drift_revoke, freshness, overriding, run,
};
use crate::flow::{
    operations::{Reply, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

/// An action on a drift event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Acknowledge,
    Quarantine,
    Recouple,
    Tolerate,
    Escalate,
    Revoke,
}

impl Move {
    /// Converts the name of a resolution. An invalid name is refused by its own rule.
    pub(super) fn resolving(word: &str) -> Self {
        match word {
            "recoupled" => Self::Recouple,
            "tolerated" => Self::Tolerate,
            "revoked" => Self::Revoke,
            _ => Self::Escalate,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Acknowledge => "acknowledged",
            Self::Quarantine => "quarantined",
            Self::Recouple => "recoupled",
            Self::Tolerate => "tolerated",
            Self::Escalate => "escalated",
            Self::Revoke => "revoked",
        }
    }

    /// Returns the event's status after the action.
    fn leads_to(self, from: DriftEventStatus) -> DriftEventStatus {
        match self {
            // An acknowledgement never moves a later status back.
            Self::Acknowledge if from == DriftEventStatus::Open => DriftEventStatus::Acknowledged,
            Self::Acknowledge => from,
            Self::Quarantine => DriftEventStatus::Quarantined,
            Self::Escalate => DriftEventStatus::Escalated,
            Self::Recouple | Self::Tolerate | Self::Revoke => DriftEventStatus::Resolved,
        }
    }

    fn is_resolution(self) -> bool {
        !matches!(self, Self::Acknowledge | Self::Quarantine)
    }
}

/// One action of one person on one event.
pub(super) struct Doing<'a> {
    pub(super) what: Move,
    pub(super) by: &'a Caller,
    pub(super) note: Option<&'a str>,
    pub(super) now: Time,
}

/// Handles an API call that takes an action on an event.
pub(super) async fn act<Q>(
    registry: &Registry,
    call: Request<Q>,
    what: Move,
    note: Option<String>,
) -> Reply<DriftEvent>
where
    Q: RpcRequest + ByIdRequest + Validate,
{
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    if what == Move::Tolerate && note.as_deref().unwrap_or_default().is_empty() {
        return Err(Error::field("rationale", "is required to tolerate the drift").into());
    }
    let (id, by) = (request.id().to_owned(), caller.clone());
    let moved = registry.idempotent(&caller, key, async move |db| {
        let (check, event) = locked(db, &by, &id).await?;
        if_match.check(&event)?;
        let now = freshness::database_now(db).await?;
        let doing = Doing { what, by: &by, note: note.as_deref(), now };
        apply(db, &check, &event, &doing).await
    });
    let moved = moved.await?;
    registry.wait_for_graph::<DriftEvent>().await;
    Ok(tagged(moved.reply()))
}

/// Deletes an event. Deleting an unresolved event also tolerates it.
pub(super) async fn delete(
    registry: &Registry,
    caller: &Caller,
    call: Request<DeleteDriftEventRequest>,
) -> Result<(String, DriftEvent), Error> {
    let if_match = IfMatch::of(call.metadata());
    let (_, request) = admitted(call)?;
    let (id, by) = (request.id, caller.clone());
    let gone = registry.store.write_tx(&caller.scope(), async move |db| {
        let (check, mut event) = locked(db, &by, &id).await?;
        if_match.check(&event)?;
        if event.known_state() != Some(DriftEventStatus::Resolved) {
            let now = freshness::database_now(db).await?;
            let doing = Doing { what: Move::Tolerate, by: &by, note: None, now };
            event = apply(db, &check, &event, &doing).await?;
        }
        let gone = DriftEvent::soft_delete(db, &event).await?;
        Ok::<_, Error>((id, gone))
    });
    let gone = gone.await?;
    registry.wait_for_graph::<DriftEvent>().await;
    Ok(gone)
}

/// Applies a decision on a check to the drift events that the check's runs opened.
pub(super) async fn after_decision(
    db: &mut Db,
    check: &CouplingCheck,
    by: &Caller,
    decision: &str,
    note: Option<&str>,
    now: Time,
) -> Result<(), Error> {
    let what = if decision == "accept" { Move::Acknowledge } else { Move::Escalate };
    let events: Vec<DriftEvent> = drifts::table
        .filter(drifts::tenant_id.eq(&check.tenant_id).and(drifts::check_id.eq(&check.id)))
        .filter(drifts::status.ne(DriftEventStatus::Resolved))
        .filter(drifts::result_source.eq(ENGINE))
        .order((drifts::created_at, drifts::id))
        .for_update()
        .select(DriftEvent::as_select())
        .load(db)
        .await?;
    for event in events {
        apply(db, check, &event, &Doing { what, by, note, now }).await?;
    }
    Ok(())
}

/// Returns the event and its check. The check is locked first, in the same order as a run locks
/// them.
async fn locked(db: &mut Db, by: &Caller, id: &str) -> Result<(CouplingCheck, DriftEvent), Error> {
    let found = or_not_found(DriftEvent::find(db, by.tenant(), id, false).await, id)?;
    let check = CouplingCheck::by_id_for_update(db, by.tenant(), &found.check_id).await?;
    let event = or_not_found(DriftEvent::lock(db, by.tenant(), id).await, id)?;
    Ok((check, event))
}

/// Applies the action to a locked event of a locked check.
async fn apply(
    db: &mut Db,
    check: &CouplingCheck,
    event: &DriftEvent,
    doing: &Doing<'_>,
) -> Result<DriftEvent, Error> {
    let from = event.known_state().unwrap_or(DriftEventStatus::Resolved);
    if from == DriftEventStatus::Resolved {
        let (id, state) = (event.id.clone(), from.to_string());
        return Err(Error::Final { kind: DriftEvent::KIND, id, state });
    }
    let actor = doing.by.actor.as_str();
    let mut quarantine_id = event.quarantine_id.clone();
    let mut delegation_id = None;
    match doing.what {
        Move::Acknowledge => {}
        // Ends the override, because findings that people must review can't be lifted.
        Move::Escalate => overriding::end(db, check).await?,
        Move::Quarantine => {
            quarantine_id = Some(quarantine::begin(db, event, actor, doing.note).await?);
        }
        Move::Recouple => {
            recouple(db, check, actor).await?;
            quarantine::end(db, event, actor).await?;
        }
        Move::Tolerate => {
            tolerate(db, check, event).await?;
            quarantine::end(db, event, actor).await?;
        }
        Move::Revoke => delegation_id = Some(drift_revoke::revoke(db, check, event).await?),
    }
    // Read again, because a new run of the check may have changed the row.
    let event = DriftEvent::by_id(db, None, &event.id).await?;
    let mut acts = event.acts.clone();
    acts.push(DriftAct {
        act: doing.what.word().to_owned(),
        by: doing.by.identity(),
        at: Some(doing.now),
        note: doing.note.map(str::to_owned),
        delegation_id,
    });
    let effect = event.recommended_runtime_effect.as_deref().unwrap_or_default();
    let effect = RuntimeEffect::from_word(effect).unwrap_or(RuntimeEffect::Deny);
    let escalates = doing.what == Move::Escalate;
    let least = if escalates { RuntimeEffect::RequireHumanReview } else { effect };
    let resolution = event.resolution.clone();
    let row = drifts::table.find(&event.id).filter(drifts::tenant_id.eq(&event.tenant_id));
    if escalates {
        // A newer snapshot alone does not end drift that people must review.
        diesel::update(row).set(drifts::until_fresh.eq(None::<Value>)).execute(db).await?;
    }
    let moved = diesel::update(row)
        .set((
            drifts::status.eq(doing.what.leads_to(from)),
            drifts::resolution.eq(if doing.what.is_resolution() {
                Some(doing.what.word().to_owned())
            } else {
                resolution
            }),
            drifts::quarantine_id.eq(quarantine_id),
            drifts::recommended_runtime_effect.eq(effect.max(least).to_string()),
            drifts::acts.eq(acts),
            drifts::updated_at.eq(clock_timestamp()),
        ))
        .returning(DriftEvent::as_returning())
        .get_result(db)
        .await?;
    Ok(moved)
}

/// Runs the check again. If the result is drift, the transaction is rolled back.
async fn recouple(db: &mut Db, check: &CouplingCheck, actor: &str) -> Result<(), Error> {
    if check.deleted_at.is_some() {
        let text = "the check of this drift was deleted and can't be run again";
        return Err(Error::NotAllowed(text.to_owned()));
    }
    let (ran, result) = run::run(db, check, actor).await?;
    if result < CouplingResult::RevalidationRequired {
        return Ok(());
    }
    let mut still = ApiError::plain(ErrorCode::StillDecoupled);
    still.violations = ran.findings.iter().filter_map(decoupled).collect();
    Err(still.into())
}

/// Describes a finding that keeps the check from being coupled. It names the anchor, the drift and
/// the paths that differ from the assumptions.
fn decoupled(finding: &CheckFinding) -> Option<Violation> {
    let result = CouplingResult::from_word(&finding.coupling_result);
    if result.is_some_and(|result| result < CouplingResult::RevalidationRequired) {
        return None;
    }
    let mut problem = format!("the anchor `{}` is {}", finding.anchor_id, finding.coupling_result);
    for drift_type in &finding.drift_types {
        let _ = write!(problem, ", {drift_type}");
    }
    if !finding.mismatched_paths.is_empty() {
        let _ = write!(problem, " at {}", finding.mismatched_paths.join(", "));
    }
    Some(Violation::new("resolution", problem))
}

/// Stores the last run's findings of this type of drift as tolerated. A later run with the same
/// findings only warns.
async fn tolerate(db: &mut Db, check: &CouplingCheck, event: &DriftEvent) -> Result<(), Error> {
    if event.result_source != ENGINE {
        return Ok(());
    }
    let stored: Value = checks::table.find(&check.id).select(checks::tolerated).first(db).await?;
    let mut tolerated: Vec<Tolerated> = serde_json::from_value(stored).unwrap_or_default();
    let found = check.findings.iter().filter(|finding| {
        finding.drift_type.as_ref() == Some(&event.drift_type)
            && event.anchors_implicated.contains(&finding.anchor_id)
    });
    for finding in found {
        let known = Tolerated {
            anchor_id: finding.anchor_id.as_str().into(),
            drift_type: event.drift_type.clone(),
            content_hash: finding.content_hash.clone(),
        };
        if !tolerated.contains(&known) {
            tolerated.push(known);
        }
    }
    let tolerated = serde_json::to_value(tolerated).unwrap_or_default();
    diesel::update(checks::table.find(&check.id))
        .filter(checks::tenant_id.eq(&check.tenant_id))
        .set(checks::tolerated.eq(tolerated))
        .execute(db)
        .await?;
    Ok(())
}
