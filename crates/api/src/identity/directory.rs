//! What this room asks of others: tenants and API keys, and the installation's secrets.

use std::{net::IpAddr, sync::Arc};

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use ipnet::IpNet;

/// A tenant, as far as a credential is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    pub id: Arc<str>,
    pub slug: Arc<str>,
    /// Neither suspended nor deleted.
    pub active: bool,
}

/// An API key as stored.
#[derive(Clone, Debug)]
pub struct ApiKeyFacts {
    pub id: Arc<str>,
    pub tenant_id: Arc<str>,
    /// Status `active`: anything else refuses.
    pub active: bool,
    /// [`super::api_key::code`] of the secret.
    pub code: [u8; 32],
    /// The secret before a rotation, and until when it still counts.
    pub previous: Option<([u8; 32], DateTime<Utc>)>,
    pub expires_at: Option<DateTime<Utc>>,
    pub scopes: Arc<[String]>,
    pub principal_ids: Arc<[String]>,
    /// Empty: from anywhere.
    pub allowed_from: Arc<[IpNet]>,
}

impl ApiKeyFacts {
    /// Whether a call from `peer` is within the allow-list; from an unknown address only when
    /// there is no list.
    pub fn allows(&self, peer: Option<IpAddr>) -> bool {
        // A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d.
        let peer = peer.map(|address| address.to_canonical());
        self.allowed_from.is_empty()
            || peer.is_some_and(|peer| self.allowed_from.iter().any(|net| net.contains(&peer)))
    }
}

/// Reads the list of an API key's record.
///
/// # Errors
/// The first entry that is neither an address nor a network (CIDR); the key must then be refused.
pub fn allow_list<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Arc<[IpNet]>, String> {
    let read = |entry: &'a str| {
        let alone = || entry.parse::<IpAddr>().map(IpNet::from);
        entry.parse::<IpNet>().or_else(|_| alone()).map_err(|_| entry.to_owned())
    };
    entries.into_iter().map(read).collect()
}

/// Tenants and API keys as they stand now, from memory: asked on every call.
pub trait Directory: Send + Sync + 'static {
    /// Whether what is known is recent enough to judge a credential by.
    fn is_fresh(&self) -> bool {
        true
    }
    fn api_key(&self, public_id: &str) -> Option<Arc<ApiKeyFacts>>;
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
    /// Compares in constant time.
    fn equal(&self, left: &[u8], right: &[u8]) -> bool;
}
