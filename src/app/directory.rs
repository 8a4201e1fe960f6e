//! The directory that identity needs, from the graph in memory.

use std::sync::Arc;

use authority_ids::TenantId;
use futures_util::{FutureExt, future::BoxFuture};

use authority_api::identity::{Directory, TenantFacts};
use authority_core::graph::{ApiKey, Graph};

/// Tenants and API keys of the authority graph.
pub(super) struct GraphDirectory(pub(super) Arc<Graph>);

impl Directory for GraphDirectory {
    fn is_fresh(&self) -> bool {
        self.0.fresh().is_ok()
    }

    fn api_key(&self, public_id: &str) -> Option<Arc<ApiKey>> {
        // A stale graph may miss a revocation, so it admits nobody.
        self.0.fresh().ok()?;
        self.0.api_key(public_id)
    }

    fn tenant(&self, id: &TenantId) -> Option<TenantFacts> {
        let handle = self.0.tenant(id).ok()??;
        let graph = handle.read();
        let tenant = graph.tenant()?;
        Some(TenantFacts {
            id: id.clone(),
            slug: graph.profile.slug.as_str().into(),
            active: tenant.active,
        })
    }

    fn catch_up(&self) -> BoxFuture<'static, ()> {
        let graph = Arc::clone(&self.0);
        async move { graph.catch_up().await }.boxed()
    }

    fn tenant_of_org(&self, org: &str) -> Option<TenantFacts> {
        self.tenant(&self.0.tenant_of_org(org)?)
    }

    fn excludes(&self, tenant_id: &TenantId, subject: &str, email: Option<&str>) -> bool {
        // Without the tenant's data a person is excluded.
        let Ok(Some(handle)) = self.0.tenant(tenant_id) else { return true };
        let graph = handle.read();
        graph.excludes(subject, email)
    }
}
