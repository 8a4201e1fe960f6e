//! The current grants of an entity, with the reason why a grant gives no authority now.

use std::sync::Arc;

use authority_ids::{PrincipalId, TenantId};
use authority_model::{
    proto::runtime::{GetAuthorityRequest, GetAuthorityResponse, Grant},
    wire::Json,
};

use authority_api::{error::ApiError, identity::Caller};
use authority_core::{clock::Clock, graph::Graph, store::Store};

pub(super) struct GrantQueries {
    pub(super) graph: Arc<Graph>,
    pub(super) store: Store,
    pub(super) clock: Clock,
}

impl GrantQueries {
    pub(super) async fn of(
        &self,
        caller: &Caller,
        asked: GetAuthorityRequest,
    ) -> Result<GetAuthorityResponse, ApiError> {
        self.store.confirm(&caller.scope()).await?;
        let missing = ApiError::not_found("entity", &asked.entity_id);
        if !caller.acts_for(&asked.entity_id) {
            return Err(missing);
        }
        // The age of the graph is also checked for an entity that is not a principal and therefore
        // has no authority.
        self.graph.fresh()?;
        let tenant_id = match caller.tenant() {
            Some(tenant) => Ok(tenant.clone()),
            None => PrincipalId::parse(&asked.entity_id).map(|id| TenantId::of(&id)),
        };
        let Ok(tenant_id) = tenant_id else { return Err(missing) };
        let Some(handle) = self.graph.tenant(&tenant_id)? else { return Err(missing) };
        let graph = handle.read();
        if !graph.has_principal(&asked.entity_id) {
            return Err(missing);
        }
        let grants =
            graph.grants_of(&asked.entity_id, self.clock.now()).into_iter().map(|grant| Grant {
                kind: grant.kind.to_owned(),
                id: grant.id,
                chain: grant.chain,
                actions: grant.actions,
                bounds: Some(Json(grant.bounds)),
                state: grant.state.to_owned(),
                reason: grant.reason,
            });
        Ok(GetAuthorityResponse {
            entity_id: asked.entity_id,
            grants: grants.collect(),
            authority_revision: graph.revision.try_into().unwrap_or(u32::MAX),
        })
    }
}
