//! The tenants and API keys that identity needs. A trait, so that identity is tested without a database.

use std::sync::Arc;

use authority_ids::TenantId;
use futures_util::future::BoxFuture;

use authority_core::graph::ApiKey;

use super::Error;

/// A tenant, as credentials need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    pub id: TenantId,
    pub slug: Arc<str>,
    /// Neither suspended nor deleted.
    pub active: bool,
}

/// Present tenants and API keys, from memory: used on every call. `None` is what the data says; where they are no
/// longer recent enough to say it, each answers [`Error::Unavailable`].
pub trait Directory: Send + Sync + 'static {
    /// Whether the data is recent enough to judge a credential.
    fn is_fresh(&self) -> bool {
        true
    }
    fn api_key(&self, public_id: &str) -> Result<Option<Arc<ApiKey>>, Error>;
    fn tenant(&self, id: &TenantId) -> Result<Option<TenantFacts>, Error>;
    /// By `idp_org_id`; never a deleted tenant, nor for an empty organisation.
    fn tenant_of_org(&self, org: &str) -> Result<Option<TenantFacts>, Error>;
    /// Whether the tenant's own records exclude this person, by a token's `sub` and e-mail address.
    fn excludes(
        &self,
        tenant_id: &TenantId,
        subject: &str,
        email: Option<&str>,
    ) -> Result<bool, Error>;
    /// Completes once everything that was committed before the call is known here.
    fn catch_up(&self) -> BoxFuture<'static, ()>;
}
