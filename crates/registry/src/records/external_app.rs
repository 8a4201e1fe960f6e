//! External apps: connected services of other vendors.

use authority_model::{
    proto::registry::*, schema::external_apps, service::ExternalAppService, state::ExternalAppState,
};

use crate::{flow::prelude::*, mcp::record_rules};

impl RecordRow for ExternalApp {
    type List = ListExternalAppsRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] =
        &["vendor_name", "base_url", "mcp", "notes", "tags", "metadata"];

    fn filtered(by: &ListExternalAppsRequest) -> external_apps::BoxedQuery<'_, Pg> {
        let mut query = external_apps::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(external_apps::state.eq(state));
        }
        if let Some(connector_kind) = &by.connector_kind {
            query = query.filter(external_apps::connector_kind.eq(connector_kind));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        record_rules::check_app(self, found);
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        record_rules::complete_app(self, was, tx.caller)
    }
}

impl_queries!(ExternalApp, external_apps);
impl_referenced!(ExternalApp, external_apps);

impl Entity for ExternalApp {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(ExternalAppState::Revoked);
}

impl_save!(ExternalApp, external_apps);
impl_end!(ExternalApp, external_apps);

#[tonic::async_trait]
impl ExternalAppService for Registry {
    async fn list_external_apps(
        &self,
        call: Request<ListExternalAppsRequest>,
    ) -> Reply<ListExternalAppsResponse> {
        self.list(call).await
    }

    async fn create_external_app(
        &self,
        call: Request<CreateExternalAppRequest>,
    ) -> Reply<ExternalApp> {
        self.create(call).await
    }

    async fn get_external_app(&self, call: Request<GetExternalAppRequest>) -> Reply<ExternalApp> {
        self.get(call).await
    }

    async fn update_external_app(
        &self,
        call: Request<UpdateExternalAppRequest>,
    ) -> Reply<ExternalApp> {
        self.update(call).await
    }

    async fn delete_external_app(
        &self,
        call: Request<DeleteExternalAppRequest>,
    ) -> Reply<DeleteExternalAppResponse> {
        self.delete(call).await
    }
}
