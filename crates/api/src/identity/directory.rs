//! What identity needs from other crates: tenants and API keys, and the installation's secrets.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use authority_core::graph::ApiKey;

/// A tenant, as credentials need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    pub id: Arc<str>,
    pub slug: Arc<str>,
    /// Neither suspended nor deleted.
    pub active: bool,
}

/// Present tenants and API keys, from memory: used on every call.
pub trait Directory: Send + Sync + 'static {
    /// Whether the data is recent enough to judge a credential.
    fn is_fresh(&self) -> bool {
        true
    }
    fn api_key(&self, public_id: &str) -> Option<Arc<ApiKey>>;
    /// By id.
    fn tenant(&self, id: &str) -> Option<TenantFacts>;
    /// By `idp_org_id`; never a deleted tenant, nor for an empty organisation.
    fn tenant_of_org(&self, org: &str) -> Option<TenantFacts>;
    /// Whether the tenant's own records exclude this person, by a token's `sub` and e-mail address.
    fn excludes(&self, tenant_id: &str, subject: &str, email: Option<&str>) -> bool;
    /// Completes once everything that was committed before the call is known here.
    fn catch_up(&self) -> BoxFuture<'static, ()>;
}

/// The installation's cryptography, as credentials need it.
pub trait Secrets: Send + Sync + 'static {
    /// SHA-256.
    fn digest(&self, bytes: &[u8]) -> [u8; 32];
    /// An authentication code that only this installation can compute; different for each domain.
    fn code(&self, domain: &str, bytes: &[u8]) -> [u8; 32];
}
