//! The blast radius of a delegation or principal: the delegations and agents that would lose
//! authority if it were revoked.

use authority_model::{
    proto::{
        delegation::{
            BlastRadius, Delegation, GetBlastRadiusRequest, GetPrincipalBlastRadiusRequest,
        },
        registry::Principal,
    },
    schema::delegations,
};
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};
use tonic::Response;

use super::line::newest_id;
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

/// Finds a delegation, `$2`, and all delegations below it that are not revoked, without those below a
/// revoked one. The result is as in the other query, and includes the delegate of `$2`.
const OF_DELEGATION: &str = "WITH RECURSIVE reached AS ( \
        SELECT id, delegate_id, depth FROM delegations WHERE tenant_id = $1 AND id = $2 \
        UNION \
        SELECT below.id, below.delegate_id, below.depth FROM reached JOIN delegations AS below \
        ON below.tenant_id = $1 AND below.parent_id = reached.id AND below.state <> 'revoked' \
    ), acting AS (SELECT DISTINCT delegate_id AS id FROM reached) \
    SELECT (SELECT count(*) FROM reached) AS delegation_total, \
        (SELECT count(*) FROM acting) AS agent_total, \
        ARRAY(SELECT id FROM reached ORDER BY depth, id LIMIT $3) AS delegation_ids, \
        ARRAY(SELECT id FROM acting ORDER BY id LIMIT $3) AS agents";

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
        radius(db, &principal.tenant_id, reached).await.map_err(Error::from)
    });
    Ok(Response::new(read.await?))
}

/// Returns a delegation and the delegations below it, nearest first. A renewed delegation is
/// replaced by its newest successor. Revoked delegations are left out, with everything below them.
pub(crate) async fn of_delegation(
    registry: &Registry,
    call: Request<GetBlastRadiusRequest>,
) -> Reply<BlastRadius> {
    let (caller, request) = admitted(call)?;
    let whose = caller.scope();
    let most = i64::from(request.limit.unwrap_or(LISTED));
    let read = registry.store.read_tx(&whose, async move |db| {
        let id = &request.id;
        let named = or_not_found(Delegation::find(db, caller.tenant(), id, false).await, id)?;
        let tenant_id = named.tenant_id();
        let newest = newest_id(db, tenant_id, row_id(&named.id)?).await?;
        let newest = newest.map_or_else(|| named.id.clone(), String::from);
        let reached: Reached = diesel::sql_query(OF_DELEGATION)
            .bind::<Text, _>(tenant_id)
            .bind::<Text, _>(newest)
            .bind::<BigInt, _>(most)
            .get_result(db)
            .await?;
        radius(db, tenant_id, reached).await.map_err(Error::from)
    });
    Ok(Response::new(read.await?))
}

/// The answer, with the listed delegations.
async fn radius(db: &mut Db, tenant_id: &str, reached: Reached) -> QueryResult<BlastRadius> {
    let delegations = delegations::table
        .filter(delegations::tenant_id.eq(tenant_id))
        .filter(delegations::id.eq_any(&reached.delegation_ids))
        .order((delegations::depth, delegations::id))
        .select(Delegation::as_select())
        .load(db)
        .await?;
    Ok(BlastRadius {
        delegations,
        agents: reached.agents,
        last_used: None,
        delegation_total: counted(reached.delegation_total),
        agent_total: counted(reached.agent_total),
    })
}

fn counted(number: i64) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
