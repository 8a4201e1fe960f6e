//! Renewals. A renewed delegation ends, and a successor with the same principals and the same
//! parent takes its place in the same transaction.
//!
//! Both delegations belong to one line, and the line's id is the id of its first delegation.
//! Counters and quarantines belong to the line. The children get the successor as their parent.
//! Standing approvals end: people signed the bounds of the renewed delegation.

use authority_decision::facts::Counts;
use authority_graph::{Fence, hold_fence};
use authority_model::{
    proto::delegation::{Delegation, RenewDelegationRequest},
    record::{ByIdRequest, RecordRequest, RpcRequest},
    schema::{delegations, principals},
    state::DelegationState,
    validate::Validate,
    wire::Time,
};
use chrono::{DateTime, Utc};

use super::{
    counters::{self, Holder, Windows},
    delegating_key::{not_quarantined, participants},
    line::line,
    party::Party,
    place::check_new,
};
use crate::flow::{
    operations::{admit, or_not_found},
    patch::{named_faults, with_cleared},
    prelude::*,
    version::{IfMatch, tagged},
};

/// Replaces a delegation by a successor with the changed fields.
pub(crate) async fn renew(
    registry: &Registry,
    call: Request<RenewDelegationRequest>,
) -> Reply<Delegation> {
    type Call = RenewDelegationRequest;
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, mut request, mut faults) = admit(call)?;
    let (id, cleared) = (request.id().to_owned(), request.cleared());
    let (patch, mask) = request.open();
    let mask = with_cleared::<Call>(&patch, mask, cleared, &mut faults);
    faults.within(Call::FIELD, |faults| {
        Delegation::reject_immutable(&mask, faults);
        rules::places("jurisdictions", &patch.jurisdictions, faults);
        if !mask.paths.iter().any(|path| path == "expires_at") {
            faults.add("expires_at", "is required: the new end, or null for no end");
        }
    });
    named_faults::<Call>(&patch, &mask, &mut faults);
    Error::unless_clean(faults)?;
    let (now, by) = (registry.clock.now(), caller.clone());
    let destinations = std::sync::Arc::clone(&registry.destinations);
    let renewed = registry.idempotent(&caller, key, async move |db| {
        let party = Party::of(db, &by, now).await?;
        lock_before(db, by.tenant(), &id, now).await?;
        let was = or_not_found(Delegation::lock(db, by.tenant(), &id).await, &id)?;
        if let Some(party) = &party {
            party.check_gave(&was)?;
            if was.parent_id.is_none() {
                let text = "only the owner renews a delegation without a parent";
                return Err(Error::Role(text.to_owned()));
            }
        }
        if_match.check(&was)?;
        check_in_force(&was, now)?;
        let mut new = was.clone();
        new.merge(patch, &mask);
        check_fields(&new, now)?;
        let slug = new.tenant_slug(db, by.tenant()).await?;
        new.stamp_created(new.new_id(&slug)?, by.actor.clone());
        (new.created_at, new.updated_at) = (None, None);
        new.line_id = Some(line(&was).to_owned());
        new.standing.clear();
        let mut tx = WriteTx { db, caller: &by, now, destinations: &destinations };
        let mut chain = check_new(&mut new, party.as_ref(), &mut tx).await?;
        // All rows are locked: no statement below waits for a transaction that waits for the fence.
        hold_fence(db, Fence::Alone).await?;
        chain.insert(0, was.clone());
        not_quarantined(db, &was, &chain, &participants(&was, &chain)).await?;
        let holder = Holder { tenant_id: was.tenant_id(), id: line(&was) };
        let currencies = (was.currency.as_deref(), new.currency.as_deref());
        if let Some(problem) = counters::check_currency(db, &holder, currencies, now).await? {
            let text = format!("{problem}; keep it, or create another delegation");
            return Err(Error::field("delegation.currency", text));
        }
        counters::carry(db, holder, windows(&was), windows(&new), now).await?;
        let made = Delegation::insert(db, &new).await?;
        hand_over(db, &was, &made, now).await?;
        Ok::<_, Error>(made)
    });
    let renewed = renewed.await?;
    registry.wait_for_graph::<Delegation>().await;
    Ok(tagged(renewed.reply()))
}

fn check_fields(new: &Delegation, now: DateTime<Utc>) -> Result<(), Error> {
    let mut faults = Violations::default();
    faults.within(RenewDelegationRequest::FIELD, |faults| {
        new.validate(faults);
        new.validate_record(faults);
        if new.expires_at.is_some_and(|end| end <= now.into()) {
            faults.add("expires_at", "is past; to end the delegation, revoke it");
        }
    });
    Error::unless_clean(faults)
}

/// Refuses a delegation that gives no authority now. A renewal would put its children, and the
/// permissions under it, into force again.
fn check_in_force(was: &Delegation, now: DateTime<Utc>) -> Result<(), Error> {
    if let Some(successor) = &was.renewed_by {
        let text = format!("the delegation was already renewed as `{successor}`; renew that one");
        return Err(Error::NotAllowed(text));
    }
    if !RenewDelegationRequest::STATES.contains(&was.state()) {
        let text = format!("the delegation is {}; only an active one is renewed", was.state);
        return Err(Error::NotAllowed(text));
    }
    if was.expires_at.is_some_and(|end| end <= now.into()) {
        let text = "the delegation has expired; create another".to_owned();
        return Err(Error::NotAllowed(text));
    }
    Ok(())
}

/// Locks the principals and the children before the delegation itself. A deletion of a principal
/// locks the principal first, and the creation of a child locks its chain from the bottom to the
/// top. Another order could deadlock with these transactions.
async fn lock_before(
    db: &mut Db,
    within: Option<&TenantId>,
    id: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let seen = or_not_found(Delegation::find(db, within, id, true).await, id)?;
    let parties = [seen.delegator_id.as_ref(), Some(&seen.delegate_id)];
    principals::table
        .filter(principals::tenant_id.eq(seen.tenant_id()))
        .filter(principals::id.eq_any(parties.into_iter().flatten()))
        .order(principals::id)
        .for_key_share()
        .select(principals::id)
        .load::<String>(db)
        .await?;
    delegations::table
        .filter(delegations::tenant_id.eq(seen.tenant_id()))
        .filter(delegations::parent_id.eq(id))
        .filter(delegations::state.ne(DelegationState::Revoked))
        .filter(delegations::expires_at.is_null().or(delegations::expires_at.gt(Time::from(now))))
        .order(delegations::id)
        .for_update()
        .select(delegations::id)
        .load::<String>(db)
        .await?;
    Ok(())
}

/// Ends the renewed delegation and moves its live children below the successor.
async fn hand_over(
    db: &mut Db,
    was: &Delegation,
    new: &Delegation,
    now: DateTime<Utc>,
) -> QueryResult<()> {
    diesel::update(delegations::table.find(&was.id))
        .filter(delegations::tenant_id.eq(was.tenant_id()))
        .set((
            delegations::state.eq(DelegationState::Revoked),
            delegations::revoked_at.eq(Some(Time::from(now))),
            delegations::revoke_reason.eq(format!("renewed as {}", new.id)),
            delegations::renewed_by.eq(&new.id),
            delegations::updated_at.eq(clock_timestamp()),
        ))
        .execute(db)
        .await?;
    diesel::update(delegations::table)
        .filter(delegations::tenant_id.eq(was.tenant_id()))
        .filter(delegations::parent_id.eq(&was.id))
        .filter(delegations::state.ne(DelegationState::Revoked))
        .filter(delegations::expires_at.is_null().or(delegations::expires_at.gt(Time::from(now))))
        .set((delegations::parent_id.eq(&new.id), delegations::updated_at.eq(clock_timestamp())))
        .execute(db)
        .await
        .map(drop)
}

fn windows(of: &Delegation) -> Windows {
    [
        (Counts::Uses, of.max_uses.as_ref().map(|limit| limit.window_seconds)),
        (Counts::Amount, of.max_total_amount.as_ref().map(|limit| limit.window_seconds)),
    ]
}
