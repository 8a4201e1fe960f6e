//! What identity asks of others: tenants and API keys, and the installation's secrets.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use authority_core::graph::ApiKey;

/// A tenant, as far as a credential is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    pub id: Arc<str>,
    pub slug: Arc<str>,
    /// Neither suspended nor deleted.
    pub active: bool,
}

/// Tenants and API keys as they stand now, from memory: asked on every call.
pub trait Directory: Send + Sync + 'static {
    /// Whether what is known is recent enough to judge a credential by.
    fn is_fresh(&self) -> bool {
        true
    }
    fn api_key(&self, public_id: &str) -> Option<Arc<ApiKey>>;
    /// By id.
    fn tenant(&self, id: &str) -> Option<TenantFacts>;
    /// By `idp_org_id`; never a deleted one, nor by an empty organisation.
    fn tenant_of_org(&self, org: &str) -> Option<TenantFacts>;
    /// Whether the tenant's own records shut this person out: a token's `sub` and e-mail address.
    fn excludes(&self, tenant_id: &str, subject: &str, email: Option<&str>) -> bool;
    /// Ends when all is known here that was committed before the call.
    fn catch_up(&self) -> BoxFuture<'static, ()>;
}

/// The installation's cryptography, as far as credentials need it.
pub trait Secrets: Send + Sync + 'static {
    /// SHA-256.
    fn digest(&self, bytes: &[u8]) -> [u8; 32];
    /// A code that only this installation can make; another for every domain.
    fn code(&self, domain: &str, bytes: &[u8]) -> [u8; 32];
}
