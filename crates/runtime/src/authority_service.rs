//! What authority is on record: entities as they were, grants as they stand, purposes that admit.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{
        AdmitPurposeRequest, AdmitPurposeResponse, DecisionRequest, ExportEntityHistoryRequest,
        ExportEntityHistoryResponse, GetAuthorityRequest, GetAuthorityResponse, GetEntityRequest,
        GetEntityResponse, Grant, ListEntityHistoryRequest, ListEntityHistoryResponse,
    },
    service::{AuthorityService, Replies},
    wire::Json,
};
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::{Runtime, history::normal, normalize, view};
use authority_api::{
    error::ApiError,
    identity::{admitted, caller},
};
use authority_decision::{Facts, Reason};

#[tonic::async_trait]
impl AuthorityService for Runtime {
    async fn get_entity(
        &self,
        call: Request<GetEntityRequest>,
    ) -> Result<Response<GetEntityResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        let at = asked.as_of.and_then(authority_model::wire::Time::moment);
        let missing = ApiError::not_found("entity", &asked.entity_id);
        let version = self.version(&caller, asked.entity_id, at).await?;
        let Some(version) = version else { return Err(missing.into()) };
        let Some(Value::Object(record)) = version.body else { return Err(missing.into()) };
        // What was deleted softly is shown only to who asks for a moment when it lived.
        if at.is_none() && record.get("deleted_at").is_some_and(|at| !at.is_null()) {
            return Err(missing.into());
        }
        let record = view::of(&version.table_name, record, &caller);
        let Some(record) = record else { return Err(missing.into()) };
        Ok(Response::new(GetEntityResponse {
            entity_type: entity_type(&version.entity_id),
            entity_id: version.entity_id,
            tenant_id: version.tenant_id.unwrap_or_default(),
            valid_from: Some(version.valid_from.into()),
            valid_to: version.valid_to.map(Into::into),
            record: Some(Json(normal(record))),
        }))
    }

    async fn list_entity_history(
        &self,
        call: Request<ListEntityHistoryRequest>,
    ) -> Result<Response<ListEntityHistoryResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.history(&caller, asked).await?))
    }

    async fn export_entity_history(
        &self,
        call: Request<ExportEntityHistoryRequest>,
    ) -> Replies<ExportEntityHistoryResponse> {
        let (caller, asked) = admitted(call)?;
        Ok(Response::new(self.export_history(caller, asked).await?))
    }

    async fn get_authority(
        &self,
        call: Request<GetAuthorityRequest>,
    ) -> Result<Response<GetAuthorityResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        self.0.store.confirm(&caller.scope()).await.map_err(ApiError::from)?;
        let missing = ApiError::not_found("entity", &asked.entity_id);
        if !caller.acts_for(&asked.entity_id) {
            return Err(missing.into());
        }
        let tenant_id =
            caller.tenant().map_or_else(|| normalize::tenant_of(&asked.entity_id), str::to_owned);
        let handle = self.0.graph.tenant(&tenant_id).map_err(ApiError::from)?;
        let Some(handle) = handle else { return Err(missing.into()) };
        let graph = handle.read();
        if !graph.has_principal(&asked.entity_id) {
            return Err(missing.into());
        }
        let grants =
            graph.grants_of(&asked.entity_id, self.0.clock.now()).into_iter().map(|grant| Grant {
                kind: grant.kind.to_owned(),
                id: grant.id,
                chain: grant.chain,
                actions: grant.actions,
                bounds: Some(Json(grant.bounds)),
                state: grant.state.to_owned(),
                reason: grant.reason,
            });
        Ok(Response::new(GetAuthorityResponse {
            entity_id: asked.entity_id,
            grants: grants.collect(),
            authority_revision: graph.revision.try_into().unwrap_or(u32::MAX),
        }))
    }

    async fn admit_purpose(
        &self,
        call: Request<AdmitPurposeRequest>,
    ) -> Result<Response<AdmitPurposeResponse>, Status> {
        let caller = caller(&call)?;
        self.0.store.confirm(&caller.scope()).await.map_err(ApiError::from)?;
        let request = normalize::normalize(&caller, call.into_inner())?;
        let handle = self.0.graph.tenant(&request.tenant_id).map_err(ApiError::from)?;
        let (facts, _) = self.gather(handle.as_ref(), &request)?;
        let facts = Facts::new(Arc::clone(&facts.gathered));
        let (admission, reason) = authority_decision::admit(&request, &facts, self.0.clock.now());
        Ok(Response::new(AdmitPurposeResponse {
            verdict: admission.word().to_owned(),
            reason_code: reason.unwrap_or(Reason::PermissionGranted).word().to_owned(),
            purpose_id: facts.gathered.purpose.as_ref().map(|purpose| purpose.id.clone()),
        }))
    }
}

impl normalize::IntoDecisionRequest for AdmitPurposeRequest {
    fn subject(&self) -> &str {
        &self.subject
    }

    fn normal_form(self) -> DecisionRequest {
        DecisionRequest {
            subject: self.subject,
            action: self.action,
            purpose: Some(self.purpose),
            context: self.context,
            ..Default::default()
        }
    }
}

/// `principal` of `svc:ent:acme:principal:…`, `agent` of `svc:agent:acme:bot`.
fn entity_type(id: &str) -> String {
    let mut parts = id.split(':').skip(1);
    match parts.next() {
        Some("ent") => parts.nth(1).unwrap_or_default().to_owned(),
        Some("del") => "delegation".to_owned(),
        Some(kind) => kind.to_owned(),
        None => String::new(),
    }
}
