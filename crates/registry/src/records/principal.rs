//! Principals: people, agents, systems and apps that act.

use authority_model::{
    proto::registry::*,
    schema::{acts_in, delegations, granted_access_to, member_of, principals, uses},
    service::PrincipalService,
    state::{DelegationState, PrincipalState},
    wire::Time,
};

use crate::flow::{prelude::*, search::containing};
use authority_ids::PrincipalId;

/// The class of principals that have a `name`.
const AGENT: &str = "agent";

impl RecordRow for Principal {
    type List = ListPrincipalsRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] = &["display_name", "notes", "tags", "metadata"];

    fn filtered(by: &ListPrincipalsRequest) -> principals::BoxedQuery<'_, Pg> {
        let mut query = principals::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(principals::state.eq(state));
        }
        if let Some(principal_class) = &by.principal_class {
            query = query.filter(principals::principal_class.eq(principal_class));
        }
        if let Some(text) = &by.q {
            query = containing!(query, "id, display_name, email", text);
        }
        if !by.deleted {
            query = query.filter(principals::deleted_at.is_null());
        }
        query
    }

    fn searches(by: &ListPrincipalsRequest) -> bool {
        by.q.is_some()
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        if self.principal_class == AGENT && self.name.is_none() {
            self.name = Some(names::slug(&self.display_name)).filter(|name| !name.is_empty());
        }
    }

    fn validate_record(&self, found: &mut Violations) {
        match (&self.name, self.principal_class == AGENT) {
            (None, true) => found.add(
                "name",
                "is required: `display_name` has no ASCII letter or digit to derive it from",
            ),
            (Some(_), false) => found.add("name", "is for agents only"),
            _ => {}
        }
        if self.owner_principal_id.as_ref().is_some_and(|owner| *owner == self.id) {
            found.add("owner_principal_id", "must not be the record itself");
        }
    }

    fn new_id(&self, slug: &str) -> Result<String, InvalidId> {
        let id = match &self.name {
            Some(name) => PrincipalId::agent(slug, name)?,
            None => PrincipalId::new(slug, new_id())?,
        };
        Ok(id.into())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if tx.caller.tenant().is_some() {
            check_agent(self, was)?;
        }
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.principal(tx.db, "owner_principal_id", self.owner_principal_id.as_deref()).await?;
        known.all()
    }

    /// Ends its delegations in both directions and removes its relationships.
    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let (tenant, id) = (&self.tenant_id, &self.id);
        diesel::update(delegations::table)
            .filter(delegations::tenant_id.eq(tenant))
            .filter(delegations::delegator_id.eq(id).or(delegations::delegate_id.eq(id)))
            .filter(delegations::state.ne(DelegationState::Revoked))
            .set((
                delegations::state.eq(DelegationState::Revoked),
                delegations::revoked_at.eq(Time::from(tx.now)),
                delegations::revoke_reason.eq("a principal of the delegation was deleted"),
                delegations::updated_at.eq(clock_timestamp()),
            ))
            .execute(tx.db)
            .await?;
        diesel::delete(member_of::table)
            .filter(member_of::tenant_id.eq(tenant).and(member_of::principal_id.eq(id)))
            .execute(tx.db)
            .await?;
        diesel::delete(acts_in::table)
            .filter(acts_in::tenant_id.eq(tenant).and(acts_in::principal_id.eq(id)))
            .execute(tx.db)
            .await?;
        diesel::delete(granted_access_to::table)
            .filter(granted_access_to::tenant_id.eq(tenant))
            .filter(granted_access_to::grantee_id.eq(id))
            .execute(tx.db)
            .await?;
        diesel::delete(uses::table)
            .filter(uses::tenant_id.eq(tenant).and(uses::agent_id.eq(id)))
            .execute(tx.db)
            .await?;
        Ok(())
    }
}

/// Refuses a tenant's caller who would write a principal other than an agent, or an agent that is
/// taken for a person. The address or the `external_subject` of a principal can exclude the person of
/// a token, and identifies approvers.
fn check_agent(row: &Principal, was: Option<&Principal>) -> Result<(), Error> {
    if row.principal_class != AGENT {
        let text =
            "only the installation's owner creates and changes principals that are not agents";
        return Err(Error::Role(text.to_owned()));
    }
    if was.is_some() {
        return Ok(());
    }
    if row.email.is_some() || row.external_subject.is_some() {
        let text =
            "only the installation's owner sets `email` and `external_subject` of a principal";
        return Err(Error::Role(text.to_owned()));
    }
    if row.known_state().is_some_and(|state| state != PrincipalState::Active) {
        let text = "only the installation's owner sets the `state` of a principal";
        return Err(Error::Role(text.to_owned()));
    }
    Ok(())
}

impl_queries!(Principal, principals);

impl Entity for Principal {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(PrincipalState::Revoked);
}

impl_save!(Principal, principals);

impl End for Principal {
    fn end<'c>(db: &'c mut Db, row: &'c Self, state: PrincipalState) -> QueryFuture<'c, Self> {
        diesel::update(principals::table.find(&row.id))
            .filter(principals::tenant_id.eq(row.tenant_id()))
            .set((
                principals::state.eq(state),
                principals::updated_at.eq(clock_timestamp()),
                principals::deleted_at.eq(clock_timestamp().nullable()),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

#[tonic::async_trait]
impl PrincipalService for Registry {
    async fn list_principals(
        &self,
        call: Request<ListPrincipalsRequest>,
    ) -> Reply<ListPrincipalsResponse> {
        self.list(call).await
    }

    async fn export_principals(
        &self,
        call: Request<ExportPrincipalsRequest>,
    ) -> Replies<ExportPrincipalsResponse> {
        self.export(call).await
    }

    async fn create_principal(&self, call: Request<CreatePrincipalRequest>) -> Reply<Principal> {
        self.create(call).await
    }

    async fn get_principal(&self, call: Request<GetPrincipalRequest>) -> Reply<Principal> {
        self.get(call).await
    }

    async fn update_principal(&self, call: Request<UpdatePrincipalRequest>) -> Reply<Principal> {
        self.update(call).await
    }

    async fn delete_principal(
        &self,
        call: Request<DeletePrincipalRequest>,
    ) -> Reply<DeletePrincipalResponse> {
        self.delete(call).await
    }
}
