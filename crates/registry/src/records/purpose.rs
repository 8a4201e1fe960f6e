//! Purposes for which actions may be performed.

use authority_model::{
    proto::registry::*, schema::purposes, service::PurposeService, state::PurposeState,
};

use crate::flow::prelude::*;

impl RecordRow for Purpose {
    type List = ListPurposesRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] =
        &["name", "description", "notes", "tags", "metadata"];

    fn filtered(by: &ListPurposesRequest) -> purposes::BoxedQuery<'_, Pg> {
        let mut query = purposes::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(purposes::state.eq(state));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::patterns("allowed_actions", &self.allowed_actions, found);
        rules::span(("not_before", self.not_before), ("expires_at", self.expires_at), found);
    }

    fn warn(&mut self) {
        self.warnings = rules::doubts(None, &self.jurisdictions);
    }

    async fn validate_with_store(
        &self,
        _: &Registry,
        _: &Caller,
        _: Option<&str>,
    ) -> Result<Violations, Error> {
        let mut found = Violations::default();
        rules::places("jurisdictions", &self.jurisdictions, &mut found);
        Ok(found)
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        references::purpose_is_free(tx.db, &row_id(&self.tenant_id)?, &self.slug).await
    }
}

impl_queries!(Purpose, purposes);

impl Entity for Purpose {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(PurposeState::Retired);
}

impl_save!(Purpose, purposes);
impl_end!(Purpose, purposes);

#[tonic::async_trait]
impl PurposeService for Registry {
    async fn list_purposes(
        &self,
        call: Request<ListPurposesRequest>,
    ) -> Reply<ListPurposesResponse> {
        self.list(call).await
    }

    async fn export_purposes(
        &self,
        call: Request<ExportPurposesRequest>,
    ) -> Replies<ExportPurposesResponse> {
        self.export(call).await
    }

    async fn create_purpose(&self, call: Request<CreatePurposeRequest>) -> Reply<Purpose> {
        self.create(call).await
    }

    async fn get_purpose(&self, call: Request<GetPurposeRequest>) -> Reply<Purpose> {
        self.get(call).await
    }

    async fn update_purpose(&self, call: Request<UpdatePurposeRequest>) -> Reply<Purpose> {
        self.update(call).await
    }

    async fn delete_purpose(
        &self,
        call: Request<DeletePurposeRequest>,
    ) -> Reply<DeletePurposeResponse> {
        self.delete(call).await
    }
}
