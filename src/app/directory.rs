//! The directory for identity, from the graph in memory.

use std::sync::Arc;

use authority_ids::TenantId;
use futures_util::{FutureExt, future::BoxFuture};

use authority_api::identity::{Directory, Error, TenantFacts};
use authority_graph::{ApiKey, Graph};

/// Tenants and API keys of the authority graph.
pub(super) struct GraphDirectory(pub(super) Arc<Graph>);

impl Directory for GraphDirectory {
    fn is_fresh(&self) -> bool {
        self.0.fresh().is_ok()
    }

    fn api_key(&self, public_id: &str) -> Result<Option<Arc<ApiKey>>, Error> {
        // A stale graph may miss a revocation. All credentials are then refused.
        self.0.fresh().map_err(|_| Error::Unavailable)?;
        Ok(self.0.api_key(public_id))
    }

    fn tenant(&self, id: &TenantId) -> Result<Option<TenantFacts>, Error> {
        let Some(handle) = self.0.tenant(id).map_err(|_| Error::Unavailable)? else {
            return Ok(None);
        };
        let graph = handle.read();
        Ok(graph.tenant().map(|tenant| TenantFacts {
            id: id.clone(),
            slug: graph.profile.slug.as_str().into(),
            active: tenant.active,
        }))
    }

    fn catch_up(&self) -> BoxFuture<'static, ()> {
        let graph = Arc::clone(&self.0);
        async move { graph.catch_up().await }.boxed()
    }

    fn tenant_of_org(&self, org: &str) -> Result<Option<TenantFacts>, Error> {
        self.0.tenant_of_org(org).map_or(Ok(None), |id| self.tenant(&id))
    }

    fn excludes(
        &self,
        tenant_id: &TenantId,
        subject: &str,
        email: Option<&str>,
    ) -> Result<bool, Error> {
        let handle = self.0.tenant(tenant_id).map_err(|_| Error::Unavailable)?;
        // Without the tenant's data a person is excluded.
        Ok(handle.is_none_or(|handle| handle.read().excludes(subject, email)))
    }
}
