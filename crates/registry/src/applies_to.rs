//! Where policies apply.

use authority_model::{proto::registry::*, schema::applies_to, service::AppliesToService};

use super::{
    prelude::*,
    relationship::{Related, tenant_of},
};

impl Row for AppliesTo {
    type List = ListAppliesToRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListAppliesToRequest) -> applies_to::BoxedQuery<'_, Pg> {
        let mut query = applies_to::table.into_boxed();
        if let Some(policy_id) = &by.policy_id {
            query = query.filter(applies_to::policy_id.eq(policy_id));
        }
        if let Some(target_class) = &by.target_class {
            query = query.filter(applies_to::target_class.eq(target_class));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        if let Some(problem) = rules::target(&self.target_class) {
            found.add("target_class", problem);
        }
    }

    async fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        let tenant = tenant_of::<Policy>(db, within, &self.policy_id).await?;
        self.tenant_id = tenant.ok_or_else(|| Error::unknown("policy_id", &self.policy_id))?;
        Ok(())
    }
}

impl_queries!(AppliesTo, applies_to);

impl Related for AppliesTo {
    type Key = String;

    async fn id_of(db: &mut Db, within: Option<&TenantId>, id: &String) -> QueryResult<String> {
        Ok(Self::by_id(db, within, id).await?.id)
    }
}

#[tonic::async_trait]
impl AppliesToService for Registry {
    async fn list_applies_to(
        &self,
        call: Request<ListAppliesToRequest>,
    ) -> Reply<ListAppliesToResponse> {
        self.list(call).await
    }

    async fn create_applies_to(&self, call: Request<CreateAppliesToRequest>) -> Reply<AppliesTo> {
        self.create(call).await
    }

    async fn get_applies_to(&self, call: Request<GetAppliesToRequest>) -> Reply<AppliesTo> {
        let (caller, request) = admitted(call)?;
        let (key, name) = (request.id.clone(), request.id);
        self.get_related(caller, key, name).await
    }

    async fn delete_applies_to(
        &self,
        call: Request<DeleteAppliesToRequest>,
    ) -> Reply<DeleteAppliesToResponse> {
        let (caller, request) = admitted(call)?;
        let (key, name) = (request.id.clone(), request.id);
        self.remove_related(caller, key, name).await
    }
}
