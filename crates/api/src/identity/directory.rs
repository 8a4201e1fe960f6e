//! The tenants and API keys that identity uses. This is a trait because tests of identity have no
//! database.

use std::sync::Arc;

use authority_ids::TenantId;
use futures_util::future::BoxFuture;

use authority_graph::ApiKey;

use super::error::Error;

/// The facts about a tenant that the check of a credential needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    pub id: TenantId,
    pub slug: Arc<str>,
    /// Neither suspended nor deleted.
    pub active: bool,
}

/// The current tenants and API keys, from memory, used on every call.
///
/// `None` means that the record does not exist. If the data is too old to decide that, each method
/// returns [`Error::Unavailable`].
pub trait Directory: Send + Sync + 'static {
    /// Whether the data is recent enough to judge a credential.
    fn is_fresh(&self) -> bool {
        true
    }
    fn api_key(&self, public_id: &str) -> Result<Option<Arc<ApiKey>>, Error>;
    fn tenant(&self, id: &TenantId) -> Result<Option<TenantFacts>, Error>;
    /// Finds a tenant by its `idp_org_id`. Returns `None` for a deleted tenant and for an empty
    /// `org`.
    fn tenant_of_org(&self, org: &str) -> Result<Option<TenantFacts>, Error>;
    /// Whether the tenant's own records exclude this person, by a token's `sub` and e-mail address.
    fn excludes(
        &self,
        tenant_id: &TenantId,
        subject: &str,
        email: Option<&str>,
    ) -> Result<bool, Error>;
    /// Completes once the directory contains all changes that were committed before the call.
    fn catch_up(&self) -> BoxFuture<'static, ()>;
}
