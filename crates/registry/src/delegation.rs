//! Delegations: authority that one principal gives to another. A delegation can't grant more than
//! the delegation above it.
//!
//! Each decision walks the chain. Revoking, suspending or narrowing a delegation therefore applies
//! to all delegations below it at once, and their rows do not change.

use authority_model::{
    proto::delegation::*,
    schema::delegations,
    service::DelegationService,
    state::DelegationState::{self, Active, Revoked, Suspended},
    validate::Violation,
    wire::Time,
};

use chrono::{DateTime, Utc};
use tonic::Response;

use super::{
    attenuation, blast_radius,
    delegating_key::{self, DelegatingKey},
    delegation_moves as moves,
    prelude::*,
};
use authority_api::{
    error::ApiError,
    identity::{CallerKind, caller},
};
use authority_decision::chain::LONGEST_CHAIN;
use authority_ids::DelegationId;
use diesel::sql_types::{BigInt, Text, Timestamptz};

/// The maximum number of live delegations directly below one delegation. Every node keeps all of
/// them in its graph.
const MOST_CHILDREN: i64 = 1_000;

/// The condition matches the index `delegations_live_children`.
const LIVE_CHILDREN: &str = "SELECT count(*) AS live FROM delegations \
     WHERE parent_id = $1 AND state <> 'revoked' AND coalesce(expires_at, 'infinity') > $2";

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
        attenuation::validate_hours(self, found);
        if self.delegator_id.is_none() && self.parent_id.is_none() {
            found.add("delegator_id", "is required unless `parent_id` is given");
        }
        if is_to_itself(self) {
            found.add("delegate_id", TO_ITSELF);
        }
    }

    /// An API key can only delegate authority that its principals were given.
    async fn validate_with_store(
        &self,
        _: &Registry,
        caller: &Caller,
        _: Option<&str>,
    ) -> Result<Violations, Error> {
        let mut found = Violations::default();
        if matches!(caller.kind, CallerKind::Key { .. }) && self.parent_id.is_none() {
            found.add("parent_id", "is required for API keys");
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
        let gave = delegations::delegator_id.eq_any(own.to_vec());
        query.filter(gave.or(delegations::delegate_id.eq_any(own.to_vec())))
    }

    fn is_visible(&self, caller: &Caller) -> bool {
        let CallerKind::Key { principal_ids: own, .. } = &caller.kind else { return true };
        own.iter().any(|id| self.delegator_id.as_ref() == Some(id) || self.delegate_id == *id)
    }

    fn new_id(&self, slug: &str) -> Result<String, InvalidId> {
        DelegationId::new(slug, new_id()).map(String::from)
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let key = match was {
            None => DelegatingKey::of(tx.db, tx.caller, tx.now).await?,
            Some(_) => None,
        };
        if was.is_none() {
            set_delegator(self, key.as_ref(), tx.db).await?;
        }
        let mut known = Known::of(self.tenant_id(), Self::KIND);
        known.principal(tx.db, "delegator_id", self.delegator_id.as_deref()).await?;
        known.principal(tx.db, "delegate_id", Some(&self.delegate_id)).await?;
        known.purposes(tx.db, "purposes", &self.purposes).await?;
        known.resources(tx.db, "resource_ids", &self.resource_ids).await?;
        known.workspaces(tx.db, "workspace_ids", &self.workspace_ids).await?;
        known.all()?;
        if let Some(was) = was {
            return attenuation::check_narrower(self, was, tx.now);
        }
        let chain = set_place(self, tx).await?;
        match key {
            Some(_) => DelegatingKey::check_chain(tx.db, self, &chain).await,
            None => Ok(()),
        }
    }
}

impl_queries!(Delegation, delegations);

impl Entity for Delegation {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Refuse(ErrorCode::MethodNotAllowed);
}

impl_save!(Delegation, delegations);
impl_end!(Delegation, delegations);

const TO_ITSELF: &str = "must not be the delegator itself";

fn is_to_itself(row: &Delegation) -> bool {
    row.delegator_id.as_ref() == Some(&row.delegate_id)
}

/// Sets the delegator to the parent's delegate, if the row has a parent. An API key must act for
/// that delegate. The parent is not locked yet, because its delegator and delegate never change.
async fn set_delegator(
    row: &mut Delegation,
    key: Option<&DelegatingKey>,
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
        .filter(|(gave, has)| key.is_none_or(|key| key.sees(gave, has)))
        .ok_or_else(|| Error::unknown("delegation.parent_id", parent_id))?;
    if let Some(key) = key {
        key.check(&delegate_id)?;
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
    let Some(parent_id) = &row.parent_id else {
        row.root_id.clone_from(&row.id);
        return Ok(Vec::new());
    };
    let parent = parent(tx.db, row.tenant_id(), parent_id).await?;
    let parent = parent.ok_or_else(|| Error::unknown("delegation.parent_id", parent_id))?;
    check_delegable(&parent, "parent", tx.now)?;
    let mut above = parent.parent_id.clone();
    let mut chain = vec![parent];
    while let Some(id) = above.take() {
        let Some(link) = ancestor(tx.db, row.tenant_id(), &id).await? else { break };
        check_delegable(&link, "ancestor", tx.now)?;
        above.clone_from(&link.parent_id);
        chain.push(link);
    }
    let [parent, ..] = &*chain else { return Ok(chain) };
    // A root is at depth 0. A longer chain can't be resolved in a decision.
    let has_room = usize::try_from(parent.depth + 1).is_ok_and(|links| links < LONGEST_CHAIN);
    if !has_room {
        let problem = format!("is already {LONGEST_CHAIN} levels deep, the maximum");
        let field = "delegation.parent_id".to_owned();
        return Err(Error::Exceeds(vec![Violation { field, problem }]));
    }
    attenuation::check_child(row, parent, tx.now)?;
    check_children(tx.db, parent, tx.now).await?;
    row.depth = parent.depth + 1;
    row.root_id.clone_from(&parent.root_id);
    Ok(chain)
}

/// Returns and locks the parent of a delegation. The lock prevents the parent from being narrowed
/// or ended before the child is committed. It also serialises the creation of children: each new
/// child counts the earlier ones.
async fn parent(db: &mut Db, tenant_id: &str, id: &str) -> QueryResult<Option<Delegation>> {
    delegations::table
        .filter(delegations::id.eq(id))
        .filter(delegations::tenant_id.eq(tenant_id))
        .for_no_key_update()
        .select(Delegation::as_select())
        .first(db)
        .await
        .optional()
}

/// Returns and locks an ancestor above the parent. The lock prevents the ancestor from being
/// narrowed or ended before the new delegation is committed.
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

/// Refuses a delegation below an inactive or expired delegation, because it could not be used.
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
        let revoked = moves::to(self, call, &[Active, Suspended], Revoked, Some(at), reason);
        Ok(shown(&by, revoked.await?))
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
        blast_radius::of_delegation(self, call).await
    }

    async fn get_principal_blast_radius(
        &self,
        call: Request<GetPrincipalBlastRadiusRequest>,
    ) -> Reply<BlastRadius> {
        blast_radius::of_principal(self, call).await
    }
}
