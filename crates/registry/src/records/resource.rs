//! Resources that actions affect.

use authority_model::{proto::registry::*, schema::resources, service::ResourceService};

use crate::flow::prelude::*;

impl RecordRow for Resource {
    type List = ListResourcesRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] = &["uri", "notes", "tags", "metadata"];

    fn filtered(by: &ListResourcesRequest) -> resources::BoxedQuery<'_, Pg> {
        let mut query = resources::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(resources::state.eq(state));
        }
        if let Some(kind) = &by.kind {
            query = query.filter(resources::kind.eq(kind));
        }
        if let Some(workspace_id) = &by.workspace_id {
            query = query.filter(resources::workspace_id.eq(workspace_id));
        }
        if let Some(external_id) = &by.external_id {
            query = query.filter(resources::external_id.eq(external_id));
        }
        query
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.principal(tx.db, "owner_principal_id", self.owner_principal_id.as_deref()).await?;
        known.all()
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        references::resource_is_free(tx.db, &row_id(&self.tenant_id)?, &self.id).await
    }
}

impl_queries!(Resource, resources);
impl_referenced!(Resource, resources);

impl Entity for Resource {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Erase;
}

impl_save!(Resource, resources);
impl_end!(Resource, resources);

#[tonic::async_trait]
impl ResourceService for Registry {
    async fn list_resources(
        &self,
        call: Request<ListResourcesRequest>,
    ) -> Reply<ListResourcesResponse> {
        self.list(call).await
    }

    async fn create_resource(&self, call: Request<CreateResourceRequest>) -> Reply<Resource> {
        self.create(call).await
    }

    async fn get_resource(&self, call: Request<GetResourceRequest>) -> Reply<Resource> {
        self.get(call).await
    }

    async fn update_resource(&self, call: Request<UpdateResourceRequest>) -> Reply<Resource> {
        self.update(call).await
    }

    async fn delete_resource(
        &self,
        call: Request<DeleteResourceRequest>,
    ) -> Reply<DeleteResourceResponse> {
        self.delete(call).await
    }
}
