//! The operation that describes the impact of a stop.

use std::collections::HashMap;

use authority_api::named_tenant;
use authority_ids::DelegationId;
use authority_model::{
    proto::{
        delegation::Delegation,
        registry::{
            GetStopImpactRequest, Principal, StopImpact, StoppedAgent, StoppedDelegation,
            StoppedPermission,
        },
    },
    schema::delegations,
    wire::Time,
};
use authority_store as store;
use tonic::Response;

use super::{
    decisions::{self, Counted, Period, ValidPermission, Whose},
    scope::{Concerned, Scope},
};
use crate::{
    delegations::line::newest_id,
    flow::{operations::or_not_found, prelude::*},
};

/// The number of delegations and agents listed if the request sets no limit.
const LISTED: i32 = 100;

/// The decisions on stopped actions.
struct Decided {
    counted: Vec<Counted>,
    permissions: Vec<ValidPermission>,
}

/// Returns the impact of a stop.
pub(crate) async fn of(
    registry: &Registry,
    call: Request<GetStopImpactRequest>,
) -> Reply<StopImpact> {
    let (caller, request) = admitted(call)?;
    let (whose, now) = (caller.scope(), registry.clock.now());
    let at = request.at.and_then(Time::moment).unwrap_or(now).min(now);
    let until = request.until.and_then(Time::moment).unwrap_or(now).clamp(at, now);
    let limit = request.limit.unwrap_or(LISTED);
    named_tenant::known(&registry.store, &caller, request.tenant_id.as_deref()).await?;
    let read = registry.store.read_tx(&whose, async move |db| {
        let scope = scope(db, &caller, request).await?;
        let concerned = scope.concerned(db, now, i64::from(limit)).await?;
        let delegations = delegations::table
            .filter(delegations::tenant_id.eq(&scope.tenant_id))
            .filter(delegations::id.eq_any(&concerned.delegation_ids))
            .order((delegations::depth, delegations::id))
            .select(Delegation::as_select())
            .load(db)
            .await?;
        Ok::<_, Error>((scope, concerned, delegations))
    });
    let (scope, concerned, delegations) = read.await?;
    let (agents, lines) = (concerned.agents.clone(), concerned.lines.clone());
    let named = scope.subject.clone();
    let read = registry.store.read_tx(&whose, async move |db| {
        decided(db, &scope, &agents, &lines, Period { at, until }).await
    });
    let decided = match read.await {
        Ok(decided) => decided,
        Err(Error::Store(store::Error::Timeout(reason))) => {
            tracing::warn!(error = %reason, "stopped counting decisions at the time limit");
            None
        }
        Err(error) => return Err(error.into()),
    };
    let limit = usize::try_from(limit).unwrap_or_default();
    let impact = StopImpact {
        delegations: delegations.into_iter().map(stopped).collect(),
        delegation_total: counted(concerned.delegation_total),
        pending_approvals: concerned.pending.iter().sum(),
        approved_approvals: concerned.approved.iter().sum(),
        decisions_counted: decided.is_some(),
        valid_permissions: decided.as_ref().map(|decided| counted(decided.permissions.len())),
        ..StopImpact::default()
    };
    Ok(Response::new(with_agents(impact, &concerned, decided, named.as_deref(), limit)))
}

/// Finds the records that the request names. The tenant of the principal or of the delegation may
/// be left out.
async fn scope(
    db: &mut Db,
    caller: &Caller,
    request: GetStopImpactRequest,
) -> Result<Scope, Error> {
    let own = caller.tenant().map(String::from);
    let mut tenant_id = request.tenant_id.or(own);
    let mut named = |tenant: &str, field: &str, id: &str| match &tenant_id {
        Some(known) if known != tenant => Err(Error::unknown(field, id)),
        Some(_) => Ok(()),
        None => {
            tenant_id = Some(tenant.to_owned());
            Ok(())
        }
    };
    if let Some(id) = &request.subject_id {
        let found = or_not_found(Principal::find(db, caller.tenant(), id, false).await, id)?;
        named(&found.tenant_id, "subject_id", id)?;
    }
    if let Some(id) = &request.delegation_id {
        let found = or_not_found(Delegation::find(db, caller.tenant(), id, false).await, id)?;
        named(found.tenant_id(), "delegation_id", id)?;
    }
    let tenant_id = tenant_id.ok_or_else(|| Error::field("tenant_id", "is required"))?;
    let delegation = match request.delegation_id.as_deref().map(DelegationId::parse) {
        Some(Ok(id)) => newest_id(db, &tenant_id, id).await?.map(String::from),
        _ => None,
    };
    Ok(Scope { tenant_id, subject: request.subject_id, delegation, actions: request.actions })
}

/// Reads the decisions. `None` if there are too many to count.
async fn decided(
    db: &mut Db,
    scope: &Scope,
    agents: &[String],
    lines: &[String],
    period: Period,
) -> Result<Option<Decided>, Error> {
    let is_of_all = scope.subject.is_none() && scope.delegation.is_none();
    let whose = if is_of_all { Whose::All } else { Whose::Agents(agents) };
    decisions::limit(db).await?;
    let counted = decisions::count(db, scope, &whose, period).await?;
    let permissions = decisions::permissions(db, scope, &whose, lines, period.at).await?;
    Ok(permissions.map(|permissions| Decided { counted, permissions }))
}

/// Adds the agents and their counts.
fn with_agents(
    mut impact: StopImpact,
    concerned: &Concerned,
    decided: Option<Decided>,
    named: Option<&str>,
    limit: usize,
) -> StopImpact {
    let mut agents: HashMap<String, StoppedAgent> = HashMap::new();
    let counts = concerned.pending.iter().zip(&concerned.approved);
    for (id, (pending, approved)) in concerned.agents.iter().zip(counts) {
        let agent = agents.entry(id.clone()).or_default();
        (agent.pending_approvals, agent.approved_approvals) = (*pending, *approved);
    }
    if let Some(decided) = decided {
        for one in decided.counted {
            let agent = agents.entry(one.subject).or_default();
            (agent.recent_decisions, agent.last_decision_at) = (Some(one.recent), one.last);
            (agent.refusals, agent.last_refused_at) = (Some(one.refusals), one.last_refused);
        }
        for one in &decided.permissions {
            let agent = agents.entry(one.subject.clone()).or_default();
            *agent.valid_permissions.get_or_insert(0) += 1;
            *agent.unreported_permissions.get_or_insert(0) += i32::from(one.outcome.is_none());
        }
        for agent in agents.values_mut() {
            for count in [
                &mut agent.valid_permissions,
                &mut agent.unreported_permissions,
                &mut agent.recent_decisions,
                &mut agent.refusals,
            ] {
                count.get_or_insert(0);
            }
        }
        let permissions = decided.permissions.into_iter().take(limit);
        impact.permissions = permissions.map(StoppedPermission::from).collect();
    }
    impact.agent_total = counted(agents.len());
    impact.agents = agents.into_iter().map(|(id, agent)| StoppedAgent { id, ..agent }).collect();
    impact.agents.sort_by_key(|agent| {
        let open = agent.pending_approvals + agent.approved_approvals;
        let open = open.saturating_add(agent.valid_permissions.unwrap_or_default());
        (
            named != Some(agent.id.as_str()),
            -open,
            -agent.recent_decisions.unwrap_or_default(),
            agent.id.clone(),
        )
    });
    impact.agents.truncate(limit);
    impact
}

fn stopped(delegation: Delegation) -> StoppedDelegation {
    let Delegation { id, delegator_id, delegate_id, actions, state, .. } = delegation;
    StoppedDelegation { id, delegator_id, delegate_id, actions, state }
}

impl From<ValidPermission> for StoppedPermission {
    fn from(permission: ValidPermission) -> Self {
        Self {
            decision_id: permission.id,
            agent_id: permission.subject,
            action: permission.action,
            valid_until: Some(Time::from(permission.valid_until)),
            outcome: permission.outcome,
        }
    }
}

fn counted(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
