//! Operations on existing delegations.

use std::sync::Arc;

use authority_model::{
    proto::{
        approval::ApprovalAct,
        delegation::{ApproveDelegationRequest, Delegation, WithdrawDelegationRequest},
    },
    record::{ByIdRequest, RpcRequest},
    schema::delegations,
    state::DelegationState,
    validate::Validate,
    wire::Time,
};

use super::{
    delegating_key::DelegatingKey,
    line::{check_version, newest},
};
use crate::{
    approvals::{APPROVERS, ActContext, ApproverAct, Eligibility, Statement, Terms, act, sign},
    flow::{
        digest::digest,
        operations::{changeable, or_not_found},
        prelude::*,
        version::{IfMatch, tagged},
    },
};
use authority_graph::{Fence, Persons};

/// The fields that aren't signed.
///
/// Signing changes some of them, the creator can be erased, a renewal sets two of them, and the rest
/// is computed.
pub(crate) const UNSIGNED: [&str; 6] =
    ["standing", "updated_at", "created_by", "warnings", "line_id", "renewed_by"];

/// Moves a delegation into `state` if the method applies to its current state. `reason` is stored
/// as its `revoke_reason`. If the delegation was renewed, its newest successor is moved.
pub(crate) async fn to<Q: RpcRequest + ByIdRequest + Validate>(
    registry: &Registry,
    call: Request<Q>,
    state: DelegationState,
    revoked_at: Option<Time>,
    reason: Option<String>,
) -> Reply<Delegation> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let (id, by, now) = (request.id().to_owned(), caller.clone(), registry.clock.now());
    let moved = registry.idempotent(&caller, key, async move |db| {
        let delegating = DelegatingKey::of(db, &by, now).await?;
        let was = newest(db, by.tenant(), &id).await?;
        if let Some(key) = delegating {
            key.check_revoke(db, &was).await?;
        }
        // Only a stop may rest on the version of a renewed delegation: the successor may have been
        // suspended since.
        if state == DelegationState::Active {
            if_match.check(&was)?;
        } else {
            check_version(db, &if_match, &was, &id).await?;
        }
        changeable(&was)?;
        if !Q::STATES.contains(&was.state()) {
            return Err(Error::NotAllowed(format!("the delegation is {}", was.state)));
        }
        let moved = diesel::update(delegations::table.find(&was.id))
            .filter(delegations::tenant_id.eq(was.tenant_id()))
            .set((
                delegations::state.eq(state),
                delegations::revoked_at.eq(revoked_at),
                delegations::revoke_reason.eq(reason),
                delegations::updated_at.eq(clock_timestamp()),
            ))
            .returning(Delegation::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(moved)
    });
    let moved = moved.await?;
    registry.wait_for_graph::<Delegation>().await;
    Ok(tagged(moved.reply()))
}

/// Adds one person's signature to the standing approval of a delegation.
pub(crate) async fn approve(
    registry: &Registry,
    call: Request<ApproveDelegationRequest>,
) -> Reply<Delegation> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let (keys, clock, by) = (registry.keys.clone(), registry.clock.clone(), caller.clone());
    let graph = Arc::clone(&registry.graph);
    let approved = registry.idempotent(&caller, key, async move |db| {
        let id = request.id;
        let was = or_not_found(Delegation::lock(db, by.tenant(), &id).await, &id)?;
        if_match.check(&was)?;
        changeable(&was)?;
        let tenant_id = row_id(was.tenant_id())?;
        let handle = graph.fenced(db, &tenant_id, Fence::Alone).await?;
        // A standing approval has no requester. Each decision determines how many approvals its
        // actions need.
        let eligibility = Eligibility {
            subject: was.delegate_id.as_str().into(),
            chain: vec![was.id.as_str().into()],
            requesters: Some(Persons::default()),
            askers: Persons::default(),
            needed: 1,
            roles: Vec::new(),
            actors: APPROVERS,
        };
        let terms = Terms { tenant_id, about: &was.id, question: digest(&was, &UNSIGNED)? };
        let (said, now) = (ApproverAct::Approve(request.comment), clock.now());
        let context =
            ActContext { keys: &keys, handle: handle.as_ref(), eligibility: &eligibility };
        let act = act(db, &by, context, terms, &was.standing, &said, now).await?;
        let standing = [was.standing.clone(), vec![act]].concat();
        let approved = diesel::update(delegations::table.find(&was.id))
            .filter(delegations::tenant_id.eq(was.tenant_id()))
            .set((
                delegations::standing.eq(standing),
                delegations::updated_at.eq(clock_timestamp()),
            ))
            .returning(Delegation::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(approved)
    });
    let approved = approved.await?;
    registry.wait_for_graph::<Delegation>().await;
    Ok(tagged(approved.reply()))
}

/// Ends the standing approval. Actions are then held until the required people approve again.
pub(crate) async fn withdraw(
    registry: &Registry,
    call: Request<WithdrawDelegationRequest>,
) -> Reply<Delegation> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, asked) = admitted(call)?;
    let (keys, clock, by) = (registry.keys.clone(), registry.clock.clone(), caller.clone());
    let withdrawn = registry.idempotent(&caller, key, async move |db| {
        let was = newest(db, by.tenant(), &asked.id).await?;
        check_version(db, &if_match, &was, &asked.id).await?;
        changeable(&was)?;
        if was.standing.is_empty() {
            return Err(Error::NotAllowed("the delegation has no standing approval".to_owned()));
        }
        let terms = Terms {
            tenant_id: row_id(was.tenant_id())?,
            about: &was.id,
            question: digest(&was, &UNSIGNED)?,
        };
        let statement = Statement::withdraws(asked.reason);
        sign(db, &by, &keys, &terms, statement, clock.now()).await?;
        let withdrawn = diesel::update(delegations::table.find(&was.id))
            .filter(delegations::tenant_id.eq(was.tenant_id()))
            .set((
                delegations::standing.eq(Vec::<ApprovalAct>::new()),
                delegations::updated_at.eq(clock_timestamp()),
            ))
            .returning(Delegation::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(withdrawn)
    });
    let withdrawn = withdrawn.await?;
    registry.wait_for_graph::<Delegation>().await;
    Ok(tagged(withdrawn.reply()))
}
