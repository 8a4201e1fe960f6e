//! The checks of a new delegation: its references, and its position below a parent that permits it.

use authority_decision::chain::LONGEST_CHAIN;
use authority_model::{
    proto::delegation::Delegation, schema::delegations, state::DelegationState, validate::Violation,
};
use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Text, Timestamptz};

use super::{attenuation, delegating_key::DelegatingKey, party::Party};
use crate::flow::prelude::*;
use authority_api::error::ApiError;
use authority_ids::DelegationId;

/// The maximum number of live delegations directly below one delegation. Every node keeps all of
/// them in its graph.
const MOST_CHILDREN: i64 = 1_000;

/// The condition matches the index `delegations_live_children`.
const LIVE_CHILDREN: &str = "SELECT count(*) AS live FROM delegations \
     WHERE parent_id = $1 AND state <> 'revoked' AND coalesce(expires_at, 'infinity') > $2";

pub(crate) const TO_ITSELF: &str = "must not be the delegator itself";

/// Checks a new delegation and sets its position. Returns the chain above it, the parent first.
pub(crate) async fn check_new(
    row: &mut Delegation,
    party: Option<&Party>,
    tx: &mut WriteTx<'_>,
) -> Result<Vec<Delegation>, Error> {
    set_delegator(row, party, tx.db).await?;
    check_references(row, tx.db).await?;
    let chain = set_place(row, tx).await?;
    if party.is_some() {
        DelegatingKey::check_chain(tx.db, row, &chain).await?;
    }
    Ok(chain)
}

pub(crate) async fn check_references(row: &Delegation, db: &mut Db) -> Result<(), Error> {
    let mut known = Known::of(row_id(row.tenant_id())?, Delegation::KIND);
    known.principal(db, "delegator_id", row.delegator_id.as_deref()).await?;
    known.principal(db, "delegate_id", Some(&row.delegate_id)).await?;
    known.purposes(db, "purposes", &row.purposes).await?;
    known.resources(db, "resource_ids", &row.resource_ids).await?;
    known.workspaces(db, "workspace_ids", &row.workspace_ids).await?;
    known.all()
}

pub(crate) fn is_to_itself(row: &Delegation) -> bool {
    row.delegator_id.as_ref() == Some(&row.delegate_id)
}

/// Sets the delegator to the parent's delegate, if the row has a parent. A party must act for that
/// delegate. The parent is not locked yet, because its delegator and delegate never change.
async fn set_delegator(
    row: &mut Delegation,
    party: Option<&Party>,
    db: &mut Db,
) -> Result<(), Error> {
    let Some(parent_id) = &row.parent_id else { return Ok(()) };
    let parent: Option<(String, String)> = delegations::table
        .filter(delegations::id.eq(parent_id))
        .filter(delegations::tenant_id.eq(row.tenant_id()))
        .select((delegations::delegator_id, delegations::delegate_id))
        .first(db)
        .await
        .optional()?;
    let (_, delegate_id) = parent
        .filter(|(gave, has)| party.is_none_or(|party| party.sees(gave, has)))
        .ok_or_else(|| Error::unknown("delegation.parent_id", parent_id))?;
    if let Some(party) = party {
        party.check(&delegate_id)?;
    }
    row.delegator_id.get_or_insert(delegate_id);
    if is_to_itself(row) {
        return Err(Error::field("delegation.delegate_id", TO_ITSELF));
    }
    Ok(())
}

/// Sets the row's position in a chain. Returns the chain above the row, the parent first. A row
/// with a parent must not exceed the parent, and all delegations above the row must be active and
/// not expired.
async fn set_place(row: &mut Delegation, tx: &mut WriteTx<'_>) -> Result<Vec<Delegation>, Error> {
    let is_renewal = row.line_id.is_some();
    let Some(parent_id) = &row.parent_id else {
        if !is_renewal {
            row.root_id.clone_from(&row.id);
        }
        return Ok(Vec::new());
    };
    let unknown = || Error::unknown("delegation.parent_id", parent_id);
    let parent_id = DelegationId::parse(parent_id).map_err(|_| unknown())?;
    let parent = parent(tx.db, row.tenant_id(), &parent_id).await?.ok_or_else(unknown)?;
    check_delegable(&parent, "parent", tx.now)?;
    let mut above = parent.parent_id.clone();
    let mut chain = vec![parent];
    while let Some(id) = above.take() {
        let Some(link) = ancestor(tx.db, row.tenant_id(), &row_id(&id)?).await? else { break };
        check_delegable(&link, "ancestor", tx.now)?;
        above.clone_from(&link.parent_id);
        chain.push(link);
    }
    let [parent, ..] = &*chain else { return Ok(chain) };
    // A root is at depth 0. A longer chain can't be resolved in a decision.
    let has_room = usize::try_from(parent.depth + 1).is_ok_and(|links| links < LONGEST_CHAIN);
    if !has_room {
        let problem = format!("is already {LONGEST_CHAIN} levels deep, the maximum");
        return Err(Error::Exceeds(vec![Violation::new("delegation.parent_id", problem)]));
    }
    attenuation::check_child(row, parent, tx.now)?;
    // A renewal takes the place of another child.
    if !is_renewal {
        check_children(tx.db, parent, tx.now).await?;
    }
    row.depth = parent.depth + 1;
    row.root_id.clone_from(&parent.root_id);
    Ok(chain)
}

/// Returns and locks the parent of a delegation. The lock prevents the parent from being narrowed
/// or ended before the child is committed. It also serialises the creation of children: each new
/// child counts the earlier children.
async fn parent(
    db: &mut Db,
    tenant_id: &str,
    id: &DelegationId,
) -> QueryResult<Option<Delegation>> {
    delegations::table
        .filter(delegations::id.eq(id.as_str()))
        .filter(delegations::tenant_id.eq(tenant_id))
        .for_no_key_update()
        .select(Delegation::as_select())
        .first(db)
        .await
        .optional()
}

/// Returns and locks an ancestor above the parent. The lock prevents the ancestor from being
/// narrowed or ended before the new delegation is committed.
async fn ancestor(
    db: &mut Db,
    tenant_id: &str,
    id: &DelegationId,
) -> QueryResult<Option<Delegation>> {
    delegations::table
        .filter(delegations::id.eq(id.as_str()))
        .filter(delegations::tenant_id.eq(tenant_id))
        .for_share()
        .select(Delegation::as_select())
        .first(db)
        .await
        .optional()
}

#[derive(QueryableByName)]
struct Children {
    #[diesel(sql_type = BigInt)]
    live: i64,
}

/// Refuses another child if the delegation has the maximum number of live children.
async fn check_children(db: &mut Db, parent: &Delegation, now: DateTime<Utc>) -> Result<(), Error> {
    let Children { live } = diesel::sql_query(LIVE_CHILDREN)
        .bind::<Text, _>(&parent.id)
        .bind::<Timestamptz, _>(now)
        .get_result(db)
        .await?;
    if live < MOST_CHILDREN {
        return Ok(());
    }
    let text = format!(
        "`{}` has {MOST_CHILDREN} live delegations below it, the maximum; revoke one first",
        parent.id
    );
    Err(ApiError::new(ErrorCode::LimitExceeded, text).into())
}

/// Refuses a new delegation that could not be used: a delegation above is inactive or expired.
fn check_delegable(above: &Delegation, which: &str, now: DateTime<Utc>) -> Result<(), Error> {
    let (id, state) = (&above.id, above.state.as_str());
    if above.known_state() != Some(DelegationState::Active) {
        return Err(Error::NotAllowed(format!("the {which} `{id}` is {state}")));
    }
    if above.expires_at.is_some_and(|end| end <= now.into()) {
        return Err(Error::NotAllowed(format!("the {which} `{id}` has expired")));
    }
    Ok(())
}
