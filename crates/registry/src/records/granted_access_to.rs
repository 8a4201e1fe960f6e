//! Grants of access to a resource or a project.

use authority_model::{
    proto::registry::*, schema::granted_access_to, service::GrantedAccessToService,
};

use crate::flow::{
    prelude::*,
    relationship::{Related, tenant_of},
};

impl RecordRow for GrantedAccessTo {
    type List = ListGrantedAccessToRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListGrantedAccessToRequest) -> granted_access_to::BoxedQuery<'_, Pg> {
        let mut query = granted_access_to::table.into_boxed();
        if let Some(resource_id) = &by.resource_id {
            query = query.filter(granted_access_to::resource_id.eq(resource_id));
        }
        if let Some(grantee_id) = &by.grantee_id {
            query = query.filter(granted_access_to::grantee_id.eq(grantee_id));
        }
        query
    }

    async fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        let id = &self.resource_id;
        let tenant = match tenant_of::<Resource>(db, within, id).await? {
            Some(tenant) => Some(tenant),
            None => tenant_of::<Project>(db, within, id).await?,
        };
        self.tenant_id = tenant.ok_or_else(|| Error::unknown("resource_id", id))?;
        Ok(())
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.of_kind(tx.db, "resource_id", "resource", &self.resource_id).await?;
        known.of_kind(tx.db, "grantee_id", &self.grantee_kind, &self.grantee_id).await?;
        known.placed_by("resource_id", &self.resource_id).all()
    }
}

impl_queries!(GrantedAccessTo, granted_access_to);

impl Related for GrantedAccessTo {
    type Key = String;

    async fn id_of(db: &mut Db, within: Option<&TenantId>, id: &String) -> QueryResult<String> {
        Ok(Self::by_id(db, within, id).await?.id)
    }
}

#[tonic::async_trait]
impl GrantedAccessToService for Registry {
    async fn list_granted_access_to(
        &self,
        call: Request<ListGrantedAccessToRequest>,
    ) -> Reply<ListGrantedAccessToResponse> {
        self.list(call).await
    }

    async fn create_granted_access_to(
        &self,
        call: Request<CreateGrantedAccessToRequest>,
    ) -> Reply<GrantedAccessTo> {
        self.create(call).await
    }

    async fn get_granted_access_to(
        &self,
        call: Request<GetGrantedAccessToRequest>,
    ) -> Reply<GrantedAccessTo> {
        let (caller, request) = admitted(call)?;
        let (key, name) = (request.id.clone(), request.id);
        self.get_related(caller, key, name).await
    }

    async fn delete_granted_access_to(
        &self,
        call: Request<DeleteGrantedAccessToRequest>,
    ) -> Reply<DeleteGrantedAccessToResponse> {
        let (caller, request) = admitted(call)?;
        let (key, name) = (request.id.clone(), request.id);
        self.remove_related(caller, key, name).await
    }
}
