//! The current grants of an entity. A grant that gives no authority now has a reason.

use std::sync::Arc;

use authority_ids::{PrincipalId, PrincipalRef, TenantId};
use authority_model::{
    proto::runtime::{GetAuthorityRequest, GetAuthorityResponse, Grant},
    wire::Json,
};

use super::budgets::budget;
use authority_api::{error::ApiError, identity::Caller};
use authority_decision::facts::Spent;
use authority_graph::{GrantView, Graph};
use authority_ledger::spending::read_counters;
use authority_process::clock::Clock;
use authority_store::{self as store, Db, Scope, Store};

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
        let entity_id = PrincipalRef::from(asked.entity_id);
        // The lock on the graph is released before counters are read.
        let (grants, revision) = {
            let graph = handle.read();
            if !graph.has_principal(&entity_id) {
                return Err(missing);
            }
            (graph.grants_of(&entity_id, self.clock.now()), graph.revision)
        };
        let spent = self.spent(&tenant_id, &grants).await?;
        let grants = grants.into_iter().map(|grant| Grant {
            kind: grant.kind.to_owned(),
            id: grant.id,
            chain: grant.chain.into_iter().map(Into::into).collect(),
            actions: grant.actions,
            bounds: Some(Json(grant.bounds)),
            state: grant.state.to_owned(),
            reason: grant.reason,
            budgets: grant.budgets.into_iter().map(|one| budget(&one.with_used(&spent))).collect(),
        });
        Ok(GetAuthorityResponse {
            entity_id: entity_id.into(),
            grants: grants.collect(),
            authority_revision: revision.try_into().unwrap_or(u32::MAX),
        })
    }

    /// Reads the counters of the grants' budgets.
    async fn spent(&self, tenant_id: &TenantId, grants: &[GrantView]) -> Result<Spent, ApiError> {
        let budgets = grants.iter().flat_map(|grant| &grant.budgets);
        let wanted: Vec<_> = budgets.map(|budget| budget.key.clone()).collect();
        if wanted.is_empty() {
            return Ok(Spent::default());
        }
        let scope = Scope { tenant: Some(tenant_id.clone()), ..Scope::service() };
        let tenant_id = tenant_id.clone();
        let read = async move |db: &mut Db| {
            Ok::<_, store::Error>(read_counters(db, &tenant_id, &wanted).await?)
        };
        Ok(self.store.read_tx(&scope, read).await?)
    }
}
