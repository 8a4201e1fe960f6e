//! Revokes the delegation behind drift.

use authority_evidence::sealed;
use authority_ids::DecisionId;
use authority_model::{
    proto::reality::{CouplingCheck, DriftEvent},
    schema::{decisions, delegations},
    state::DelegationState,
};

use crate::{delegations::line::newest, flow::prelude::*};

/// Revokes the delegation used by the decision that the event or its check names. Without such a
/// decision, revokes the check's `purpose_grant_id`. If the delegation was renewed, revokes the
/// newest successor.
pub(super) async fn revoke(
    db: &mut Db,
    check: &CouplingCheck,
    event: &DriftEvent,
) -> Result<String, Error> {
    let mut id = None;
    for action_id in [&event.action_id, &check.action_id] {
        if id.is_none()
            && let Ok(decision_id) = DecisionId::parse(action_id)
        {
            id = of_decision(db, &event.tenant_id, &decision_id).await?;
        }
    }
    let id = id.or_else(|| check.purpose_grant_id.clone()).ok_or_else(|| {
        let problem = "cannot be `revoked`: neither the action nor `purpose_grant_id` of the check \
                       names a delegation";
        Error::field("resolution", problem)
    })?;
    let delegation = newest(db, None, &id).await?;
    let id = delegation.id.clone();
    if delegation.known_state() != Some(DelegationState::Revoked) {
        diesel::update(delegations::table.find(&id))
            .filter(delegations::tenant_id.eq(&event.tenant_id))
            .set((
                delegations::state.eq(DelegationState::Revoked),
                delegations::revoked_at.eq(clock_timestamp().nullable()),
                delegations::revoke_reason.eq(format!("drift {}", event.id)),
                delegations::updated_at.eq(clock_timestamp()),
            ))
            .execute(db)
            .await?;
    }
    Ok(id)
}

/// Returns the delegation that a permitted or held decision used.
async fn of_decision(
    db: &mut Db,
    tenant_id: &str,
    decision_id: &DecisionId,
) -> Result<Option<String>, Error> {
    let record: Option<Vec<u8>> = decisions::table
        .filter(decisions::id.eq(decision_id.as_str()).and(decisions::tenant_id.eq(tenant_id)))
        .select(decisions::record)
        .first(db)
        .await
        .optional()?;
    // A denied decision used no authority.
    let used = record.and_then(|record| sealed::authority(&record).ok());
    Ok(used.and_then(|used| used.chain.into_iter().next().map(Into::into)))
}
