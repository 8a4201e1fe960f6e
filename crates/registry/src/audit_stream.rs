//! Audit streams: where a tenant's audit events are sent. Sealed, never deleted.

use authority_model::{
    proto::registry::*, schema::audit_streams, service::AuditStreamService, state::AuditStreamState,
};

use super::prelude::*;

impl Row for AuditStream {
    type List = ListAuditStreamsRequest;
    const FINAL: &'static [Self::State] = &[AuditStreamState::Sealed];

    fn filtered(by: &ListAuditStreamsRequest) -> audit_streams::BoxedQuery<'_, Pg> {
        let mut query = audit_streams::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(audit_streams::state.eq(state));
        }
        query
    }

    fn defaults(&mut self) {
        names::or(&mut self.sink, "stdout");
    }

    fn validate_record(&self, found: &mut Violations) {
        let sink = self.sink.as_deref().unwrap_or_default();
        if sink != "stdout" && self.target.is_none() {
            found.add("target", format!("is required for the sink `{sink}`"));
        }
    }
}

impl_queries!(AuditStream, audit_streams);

impl Entity for AuditStream {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Refuse(ErrorCode::AuditStreamsAreImmutable);
}

impl_save!(AuditStream, audit_streams);
impl_end!(AuditStream, audit_streams);

#[tonic::async_trait]
impl AuditStreamService for Registry {
    async fn list_audit_streams(
        &self,
        call: Request<ListAuditStreamsRequest>,
    ) -> Reply<ListAuditStreamsResponse> {
        self.list(call).await
    }

    async fn create_audit_stream(
        &self,
        call: Request<CreateAuditStreamRequest>,
    ) -> Reply<AuditStream> {
        self.create(call).await
    }

    async fn get_audit_stream(&self, call: Request<GetAuditStreamRequest>) -> Reply<AuditStream> {
        self.get(call).await
    }

    async fn update_audit_stream(
        &self,
        call: Request<UpdateAuditStreamRequest>,
    ) -> Reply<AuditStream> {
        self.update(call).await
    }

    async fn delete_audit_stream(
        &self,
        call: Request<DeleteAuditStreamRequest>,
    ) -> Reply<DeleteAuditStreamResponse> {
        self.delete(call).await
    }
}
