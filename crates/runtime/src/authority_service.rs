//! Recorded authority: past versions of entities, current grants and admission.

use authority_model::{
    proto::runtime::{
        AdmitPurposeRequest, AdmitPurposeResponse, ExportEntityHistoryRequest,
        ExportEntityHistoryResponse, GetAuthorityRequest, GetAuthorityResponse, GetEntityRequest,
        GetEntityResponse, ListEntityHistoryRequest, ListEntityHistoryResponse,
    },
    service::{AuthorityService, Replies},
};
use tonic::{Request, Response, Status};

use super::{admission::PurposeAdmission, grants::GrantQueries, history::EntityQueries};
use authority_api::identity::{admitted, caller};

/// Serves `AuthorityService`.
pub(super) struct AuthorityHandlers {
    pub(super) entities: EntityQueries,
    pub(super) grants: GrantQueries,
    pub(super) purposes: PurposeAdmission,
}

#[tonic::async_trait]
impl AuthorityService for AuthorityHandlers {
    async fn get_entity(
        &self,
        call: Request<GetEntityRequest>,
    ) -> Result<Response<GetEntityResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.entities.get(&caller, asked).await?))
    }

    async fn list_entity_history(
        &self,
        call: Request<ListEntityHistoryRequest>,
    ) -> Result<Response<ListEntityHistoryResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.entities.history(&caller, asked).await?))
    }

    async fn export_entity_history(
        &self,
        call: Request<ExportEntityHistoryRequest>,
    ) -> Replies<ExportEntityHistoryResponse> {
        let (caller, asked) = admitted(call)?;
        Ok(self.entities.export(caller, asked).await?)
    }

    async fn get_authority(
        &self,
        call: Request<GetAuthorityRequest>,
    ) -> Result<Response<GetAuthorityResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.grants.of(&caller, asked).await?))
    }

    async fn admit_purpose(
        &self,
        call: Request<AdmitPurposeRequest>,
    ) -> Result<Response<AdmitPurposeResponse>, Status> {
        let caller = caller(&call)?;
        Ok(Response::new(self.purposes.admit(&caller, call.into_inner()).await?))
    }
}
