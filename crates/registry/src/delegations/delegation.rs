//! Delegations: authority that one principal gives to another. A delegation can't grant more than
//! the delegation above it.
//!
//! Each decision walks the chain. Revoking, suspending or narrowing a delegation therefore applies
//! to all delegations below it at once, and their rows do not change.

use authority_model::{
    proto::delegation::*,
    schema::delegations,
    service::DelegationService,
    state::DelegationState::{Active, Revoked, Suspended},
    wire::Time,
};

use tonic::Response;

use super::{
    attenuation, blast_radius, delegating_key, moves,
    party::Party,
    place::{TO_ITSELF, check_new, check_references, is_to_itself},
    renewal,
};
use crate::flow::prelude::*;
use authority_api::identity::{CallerKind, caller};
use authority_ids::DelegationId;

impl RecordRow for Delegation {
    type List = ListDelegationsRequest;
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
        if let Some(after) = by.expires_after {
            query = query.filter(delegations::expires_at.ge(after));
        }
        if let Some(before) = by.expires_before {
            query = query.filter(delegations::expires_at.lt(before));
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
        attenuation::validate_hours(self, found);
        if self.delegator_id.is_none() && self.parent_id.is_none() {
            found.add("delegator_id", "is required unless `parent_id` is given");
        }
        if is_to_itself(self) {
            found.add("delegate_id", TO_ITSELF);
        }
    }

    /// A tenant's callers can only delegate authority that their principals were given.
    async fn validate_with_store(
        &self,
        _: &Registry,
        caller: &Caller,
        _: Option<&str>,
    ) -> Result<Violations, Error> {
        let mut found = Violations::default();
        if !caller.is_owner() && self.parent_id.is_none() {
            found.add(
                "parent_id",
                "is required: only the installation's owner creates a delegation without a parent",
            );
        }
        rules::places("jurisdictions", &self.jurisdictions, &mut found);
        Ok(found)
    }

    async fn resolve_tenant(
        &mut self,
        _db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        references::own_tenant(&mut self.tenant_id, Self::KIND, within)
    }

    fn warn(&mut self) {
        self.warnings = rules::doubts(self.currency.as_deref(), &self.jurisdictions);
    }

    /// An API key sees only the delegations that its principals hold or gave.
    fn visible<'a>(query: Self::BoxedQuery<'a>, caller: &Caller) -> Self::BoxedQuery<'a> {
        let CallerKind::Key { principal_ids: own, .. } = &caller.kind else { return query };
        let own = || own.iter().map(String::from);
        let gave = delegations::delegator_id.eq_any(own());
        query.filter(gave.or(delegations::delegate_id.eq_any(own())))
    }

    fn is_visible(&self, caller: &Caller) -> bool {
        let CallerKind::Key { principal_ids: own, .. } = &caller.kind else { return true };
        let delegator = self.delegator_id.as_deref();
        own.iter().any(|id| delegator == Some(id.as_str()) || *id == self.delegate_id.as_str())
    }

    fn new_id(&self, slug: &str) -> Result<String, InvalidId> {
        DelegationId::new(slug, new_id()).map(String::from)
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if let Some(was) = was {
            check_references(self, tx.db).await?;
            return attenuation::check_narrower(self, was, tx.now);
        }
        let party = Party::of(tx.db, tx.caller, tx.now).await?;
        check_new(self, party.as_ref(), tx).await.map(drop)
    }
}

impl_queries!(Delegation, delegations);

impl Entity for Delegation {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Refuse(ErrorCode::MethodNotAllowed);
}

impl_save!(Delegation, delegations);
impl_end!(Delegation, delegations);

fn shown(caller: &Caller, mut answer: Response<Delegation>) -> Response<Delegation> {
    answer.get_mut().warn();
    delegating_key::show(caller, answer.get_mut());
    answer
}

#[tonic::async_trait]
impl DelegationService for Registry {
    async fn list_delegations(
        &self,
        call: Request<ListDelegationsRequest>,
    ) -> Reply<ListDelegationsResponse> {
        let by = caller(&call)?;
        let mut listed: Response<ListDelegationsResponse> = self.list(call).await?;
        listed.get_mut().delegations.iter_mut().for_each(|row| delegating_key::show(&by, row));
        Ok(listed)
    }

    async fn export_delegations(
        &self,
        call: Request<ExportDelegationsRequest>,
    ) -> Replies<ExportDelegationsResponse> {
        self.export(call).await
    }

    async fn create_delegation(&self, call: Request<CreateDelegationRequest>) -> Reply<Delegation> {
        let by = caller(&call)?;
        Ok(shown(&by, self.create(call).await?))
    }

    async fn get_delegation(&self, call: Request<GetDelegationRequest>) -> Reply<Delegation> {
        let by = caller(&call)?;
        Ok(shown(&by, self.get(call).await?))
    }

    async fn revoke_delegation(&self, call: Request<RevokeDelegationRequest>) -> Reply<Delegation> {
        let by = caller(&call)?;
        let reason = call.get_ref().reason.clone();
        let at = Time::from(self.clock.now());
        let revoked = moves::to(self, call, Revoked, Some(at), reason);
        Ok(shown(&by, revoked.await?))
    }

    async fn suspend_delegation(
        &self,
        call: Request<SuspendDelegationRequest>,
    ) -> Reply<Delegation> {
        let reason = call.get_ref().reason.clone();
        moves::to(self, call, Suspended, None, reason).await
    }

    async fn reinstate_delegation(
        &self,
        call: Request<ReinstateDelegationRequest>,
    ) -> Reply<Delegation> {
        moves::to(self, call, Active, None, None).await
    }

    async fn narrow_delegation(&self, call: Request<NarrowDelegationRequest>) -> Reply<Delegation> {
        self.update(call).await
    }

    async fn renew_delegation(&self, call: Request<RenewDelegationRequest>) -> Reply<Delegation> {
        let by = caller(&call)?;
        Ok(shown(&by, renewal::renew(self, call).await?))
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
        blast_radius::of_delegation(self, call).await
    }

    async fn get_principal_blast_radius(
        &self,
        call: Request<GetPrincipalBlastRadiusRequest>,
    ) -> Reply<BlastRadius> {
        blast_radius::of_principal(self, call).await
    }
}
