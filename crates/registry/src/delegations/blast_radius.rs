//! The blast radius of a delegation or principal: the delegations and agents that would lose
//! authority if it were revoked.

use std::collections::{BTreeSet, HashSet};

use authority_model::{
    proto::{
        delegation::{
            BlastRadius, Delegation, GetBlastRadiusRequest, GetPrincipalBlastRadiusRequest,
        },
        registry::Principal,
    },
    schema::delegations,
    state::DelegationState,
};
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};
use tonic::Response;

use crate::flow::{operations::or_not_found, prelude::*};

/// The number of delegations and agents listed if the request sets no limit.
const LISTED: i32 = 100;

/// Finds the live delegations that a principal holds or gave, and all live delegations below them.
/// `$1` is the tenant and `$2` the principal. Returns the number of these delegations, the number
/// of agents that act under them, and the first `$4` IDs of each. A delegation is live if neither
/// it nor a delegation above it was revoked or has expired at the current time, `$3`. Suspended
/// delegations are live, because they may be reinstated.
const OF_PRINCIPAL: &str = "WITH RECURSIVE live AS NOT MATERIALIZED ( \
        SELECT id, parent_id, delegate_id, delegator_id, depth FROM delegations \
        WHERE tenant_id = $1 AND state <> 'revoked' AND coalesce(expires_at, 'infinity') > $3 \
    ), above (id, parent_id) AS ( \
        SELECT id, parent_id FROM live WHERE delegate_id = $2 OR delegator_id = $2 \
        UNION ALL \
        SELECT above.id, live.parent_id FROM above JOIN live ON live.id = above.parent_id \
    ), reached AS ( \
        SELECT live.id, live.delegate_id, live.depth FROM live \
        WHERE live.id IN (SELECT above.id FROM above WHERE above.parent_id IS NULL) \
        UNION \
        SELECT live.id, live.delegate_id, live.depth FROM reached JOIN live ON live.parent_id = reached.id \
    ), acting AS (SELECT DISTINCT delegate_id AS id FROM reached WHERE delegate_id <> $2) \
    SELECT (SELECT count(*) FROM reached) AS delegation_total, \
        (SELECT count(*) FROM acting) AS agent_total, \
        ARRAY(SELECT id FROM reached ORDER BY depth, id LIMIT $4) AS delegation_ids, \
        ARRAY(SELECT id FROM acting ORDER BY id LIMIT $4) AS agents";

#[derive(QueryableByName)]
struct Reached {
    #[diesel(sql_type = BigInt)]
    delegation_total: i64,
    #[diesel(sql_type = BigInt)]
    agent_total: i64,
    #[diesel(sql_type = Array<Text>)]
    delegation_ids: Vec<String>,
    #[diesel(sql_type = Array<Text>)]
    agents: Vec<String>,
}

/// Returns the delegations and agents that would lose authority if the principal were revoked.
pub(crate) async fn of_principal(
    registry: &Registry,
    call: Request<GetPrincipalBlastRadiusRequest>,
) -> Reply<BlastRadius> {
    let (caller, request) = admitted(call)?;
    let (whose, now) = (caller.scope(), registry.clock.now());
    let most = i64::from(request.limit.unwrap_or(LISTED));
    let read = registry.store.read_tx(&whose, async move |db| {
        let id = &request.id;
        let principal = or_not_found(Principal::find(db, caller.tenant(), id, false).await, id)?;
        let reached: Reached = diesel::sql_query(OF_PRINCIPAL)
            .bind::<Text, _>(&principal.tenant_id)
            .bind::<Text, _>(&principal.id)
            .bind::<Timestamptz, _>(now)
            .bind::<BigInt, _>(most)
            .get_result(db)
            .await?;
        let delegations = delegations::table
            .filter(delegations::tenant_id.eq(&principal.tenant_id))
            .filter(delegations::id.eq_any(&reached.delegation_ids))
            .order((delegations::depth, delegations::id))
            .select(Delegation::as_select())
            .load(db)
            .await?;
        Ok::<_, Error>((reached, delegations))
    });
    let (reached, delegations) = read.await?;
    Ok(Response::new(BlastRadius {
        delegations,
        agents: reached.agents,
        last_used: None,
        delegation_total: counted(reached.delegation_total),
        agent_total: counted(reached.agent_total),
    }))
}

/// Returns a delegation and the delegations below it, nearest first. A renewed delegation is
/// replaced by its newest successor. Revoked delegations are left out, with everything below them.
pub(crate) async fn of_delegation(
    registry: &Registry,
    call: Request<GetBlastRadiusRequest>,
) -> Reply<BlastRadius> {
    let (caller, request) = admitted(call)?;
    let whose = caller.scope();
    let chain = registry.store.read_tx(&whose, async move |db| {
        let id = &request.id;
        let mut first = or_not_found(Delegation::find(db, caller.tenant(), id, false).await, id)?;
        while let Some(next) = first.renewed_by.take() {
            first = or_not_found(Delegation::find(db, caller.tenant(), &next, false).await, &next)?;
        }
        let below = delegations::table
            .filter(delegations::tenant_id.eq(first.tenant_id()))
            .filter(delegations::root_id.eq(&first.root_id))
            .filter(delegations::depth.gt(first.depth))
            .order((delegations::depth, delegations::id))
            .select(Delegation::as_select())
            .load(db)
            .await?;
        Ok::<_, Error>((first, below))
    });
    let (first, below) = chain.await?;
    let mut reached = HashSet::from([first.id.clone()]);
    let mut delegations = vec![first];
    // The list is in order of depth: a parent always comes before its children.
    for one in below {
        let ended = one.known_state() == Some(DelegationState::Revoked);
        if !ended && one.parent_id.as_ref().is_some_and(|id| reached.contains(id)) {
            reached.insert(one.id.clone());
            delegations.push(one);
        }
    }
    let agents: BTreeSet<_> = delegations.iter().map(|one| one.delegate_id.clone()).collect();
    let agents: Vec<_> = agents.into_iter().collect();
    Ok(Response::new(BlastRadius {
        delegation_total: counted(delegations.len()),
        agent_total: counted(agents.len()),
        delegations,
        agents,
        last_used: None,
    }))
}

fn counted(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
