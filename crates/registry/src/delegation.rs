//! Delegations: authority that one principal gives another, in chains that only narrow.
//!
//! Each decision walks the chain. So revoking, suspending or narrowing a delegation applies to all below it
//! at once, and the rows below do not change.

use authority_model::{
    proto::delegation::*,
    schema::delegations,
    service::DelegationService,
    state::DelegationState::{self, Active, Revoked, Suspended},
    validate::Violation,
    wire::Time,
};

use chrono::{DateTime, Utc};

use super::{attenuation, delegation_moves as moves, prelude::*};
use authority_api::identity::CallerKind;
use authority_decision::chain::LONGEST_CHAIN;
use authority_ids::DelegationId;

impl Row for Delegation {
    type List = ListDelegationsRequest;
    const FINAL: &'static [Self::State] = &[DelegationState::Revoked];
    const AUTHORITY: bool = true;

    fn filtered(by: &ListDelegationsRequest) -> delegations::BoxedQuery<'_, Pg> {
        let mut query = delegations::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(delegations::state.eq(state));
        }
        if let Some(delegator_id) = &by.delegator_id {
            query = query.filter(delegations::delegator_id.eq(delegator_id));
        }
        if let Some(delegate_id) = &by.delegate_id {
            query = query.filter(delegations::delegate_id.eq(delegate_id));
        }
        if let Some(parent_id) = &by.parent_id {
            query = query.filter(delegations::parent_id.eq(parent_id));
        }
        if let Some(root_id) = &by.root_id {
            query = query.filter(delegations::root_id.eq(root_id));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::patterns("actions", &self.actions, found);
        rules::span(("not_before", self.not_before), ("expires_at", self.expires_at), found);
        let has_amount = self.max_amount.is_some() || self.max_total_amount.is_some();
        if has_amount && self.currency.is_none() {
            found.add("currency", "is required with an amount");
        }
        if self.hours.is_some() && attenuation::hours(self).is_none() {
            found.add("hours", "`from` and `to` must differ");
        }
        if self.delegator_id == self.delegate_id {
            found.add("delegate_id", "must not be the delegator itself");
        }
    }

    fn new_id(&self, slug: &str) -> Result<String, InvalidId> {
        DelegationId::new(slug, new_id()).map(String::from)
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if was.is_none() {
            check_delegator(self, tx)?;
        }
        let mut known = Known::of(&self.tenant_id, Self::KIND);
        known.principal(tx.db, "delegator_id", Some(&self.delegator_id)).await?;
        known.principal(tx.db, "delegate_id", Some(&self.delegate_id)).await?;
        known.purposes(tx.db, "purposes", &self.purposes).await?;
        known.resources(tx.db, "resource_ids", &self.resource_ids).await?;
        known.workspaces(tx.db, "workspace_ids", &self.workspace_ids).await?;
        known.all()?;
        match was {
            None => set_place(self, tx).await,
            Some(was) => attenuation::check_narrower(self, was),
        }
    }
}

impl_queries!(Delegation, delegations);

impl Entity for Delegation {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Refuse(ErrorCode::MethodNotAllowed);
}

impl_save!(Delegation, delegations);
impl_end!(Delegation, delegations);

/// An API key may delegate only what was delegated to a principal that it is bound to.
fn check_delegator(row: &Delegation, tx: &WriteTx<'_>) -> Result<(), Error> {
    let CallerKind::Key { principal_ids, .. } = &tx.caller.kind else { return Ok(()) };
    if principal_ids.is_empty() || !tx.caller.acts_for(&row.delegator_id) {
        return Err(Error::NotSubject);
    }
    if row.parent_id.is_none() {
        return Err(Error::field("delegation.parent_id", "is required of an API key"));
    }
    Ok(())
}

/// Sets the row's place in a chain: the root, or below a parent that it does not exceed and whose
/// chain is in force.
async fn set_place(row: &mut Delegation, tx: &mut WriteTx<'_>) -> Result<(), Error> {
    let Some(parent_id) = &row.parent_id else {
        row.root_id.clone_from(&row.id);
        return Ok(());
    };
    let parent = ancestor(tx.db, &row.tenant_id, parent_id).await?;
    let parent = parent.ok_or_else(|| Error::unknown("delegation.parent_id", parent_id))?;
    check_delegable(&parent, "parent", tx.now)?;
    let mut above = parent.parent_id.clone();
    while let Some(id) = above {
        let Some(link) = ancestor(tx.db, &row.tenant_id, &id).await? else { break };
        check_delegable(&link, "ancestor", tx.now)?;
        above = link.parent_id;
    }
    // A root is at depth 0; a longer chain does not resolve.
    let has_room = usize::try_from(parent.depth + 1).is_ok_and(|links| links < LONGEST_CHAIN);
    if !has_room {
        let problem = format!("is {LONGEST_CHAIN} levels deep already, the maximum");
        let field = "delegation.parent_id".to_owned();
        return Err(Error::Exceeds(vec![Violation { field, problem }]));
    }
    attenuation::check_child(row, &parent)?;
    row.depth = parent.depth + 1;
    row.root_id = parent.root_id;
    Ok(())
}

/// A delegation above another. It is locked so that it can be neither narrowed nor ended before the one
/// below it is committed.
async fn ancestor(db: &mut Db, tenant_id: &str, id: &str) -> QueryResult<Option<Delegation>> {
    delegations::table
        .filter(delegations::id.eq(id))
        .filter(delegations::tenant_id.eq(tenant_id))
        .for_share()
        .select(Delegation::as_select())
        .first(db)
        .await
        .optional()
}

/// Refuses a delegation below one that is not active or has expired: it could never act.
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

#[tonic::async_trait]
impl DelegationService for Registry {
    async fn list_delegations(
        &self,
        call: Request<ListDelegationsRequest>,
    ) -> Reply<ListDelegationsResponse> {
        self.list(call).await
    }

    async fn export_delegations(
        &self,
        call: Request<ExportDelegationsRequest>,
    ) -> Replies<ExportDelegationsResponse> {
        self.export(call).await
    }

    async fn create_delegation(&self, call: Request<CreateDelegationRequest>) -> Reply<Delegation> {
        self.create(call).await
    }

    async fn get_delegation(&self, call: Request<GetDelegationRequest>) -> Reply<Delegation> {
        self.get(call).await
    }

    async fn revoke_delegation(&self, call: Request<RevokeDelegationRequest>) -> Reply<Delegation> {
        let reason = call.get_ref().reason.clone();
        let at = Time::from(self.clock.now());
        moves::to(self, call, &[Active, Suspended], Revoked, Some(at), reason).await
    }

    async fn suspend_delegation(
        &self,
        call: Request<SuspendDelegationRequest>,
    ) -> Reply<Delegation> {
        let reason = call.get_ref().reason.clone();
        moves::to(self, call, &[Active], Suspended, None, reason).await
    }

    async fn reinstate_delegation(
        &self,
        call: Request<ReinstateDelegationRequest>,
    ) -> Reply<Delegation> {
        moves::to(self, call, &[Suspended], Active, None, None).await
    }

    async fn narrow_delegation(&self, call: Request<NarrowDelegationRequest>) -> Reply<Delegation> {
        self.update(call).await
    }

    async fn approve_delegation(
        &self,
        call: Request<ApproveDelegationRequest>,
    ) -> Reply<Delegation> {
        moves::approve(self, call).await
    }

    async fn withdraw_delegation(
        &self,
        call: Request<WithdrawDelegationRequest>,
    ) -> Reply<Delegation> {
        moves::withdraw(self, call).await
    }

    async fn get_blast_radius(&self, call: Request<GetBlastRadiusRequest>) -> Reply<BlastRadius> {
        moves::blast_radius(self, call).await
    }
}
