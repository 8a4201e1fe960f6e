//! API keys. They are looked up before the tenant is known, and are kept as current as the
//! authority graph.

use std::{net::IpAddr, sync::Arc};

use authority_crypto::equal;
use authority_ids::{ApiKeyId, PrincipalRef, TenantId};
use chrono::{DateTime, Utc};
use ipnet::IpNet;

use super::persons::Persons;
use authority_process::network::network;

/// The data of an API key for checking credentials. The key itself is not stored.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub tenant_id: TenantId,
    pub active: bool,
    /// The message authentication code of the key's secret.
    pub code: [u8; 32],
    /// The code of the secret before the last rotation, and the end of that secret's validity.
    pub previous: Option<([u8; 32], DateTime<Utc>)>,
    pub expires_at: Option<DateTime<Utc>>,
    pub scopes: Arc<[String]>,
    pub principal_ids: Arc<[PrincipalRef]>,
    /// The allowed networks; any address if empty.
    pub allowed_from: Arc<[IpNet]>,
    /// The maximum number of decisions per second with this key, if limited.
    pub decisions_per_second: Option<u32>,
    /// The people who created or rotated the key.
    pub people: Arc<Persons>,
}

/// The reason why a secret is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The secret does not belong to the key, or a rotation replaced it.
    Unknown,
    Revoked,
    Expired,
}

impl ApiKey {
    /// Checks whether the secret with this code may be used at a time.
    ///
    /// The code is compared first, in constant time. Only a holder of the secret can learn the
    /// key's state.
    ///
    /// # Errors
    /// The reason why the secret may not be used.
    pub fn check(&self, code: &[u8; 32], at: DateTime<Utc>) -> Result<(), Unusable> {
        let previous = self.previous.as_ref().filter(|(_, until)| at < *until);
        let is_its_own =
            equal(code, &self.code) || previous.is_some_and(|(before, _)| equal(code, before));
        if !is_its_own {
            return Err(Unusable::Unknown);
        }
        if !self.active {
            return Err(Unusable::Revoked);
        }
        if self.expires_at.is_some_and(|end| end <= at) {
            return Err(Unusable::Expired);
        }
        Ok(())
    }

    /// Returns when the secret with this code expires.
    ///
    /// Returns the end of time if it never expires, and `None` if it is not a secret of the key.
    pub fn secret_until(&self, code: &[u8; 32]) -> Option<DateTime<Utc>> {
        let own = self.expires_at.unwrap_or(DateTime::<Utc>::MAX_UTC);
        if equal(code, &self.code) {
            return Some(own);
        }
        let (_, until) = self.previous.as_ref().filter(|(before, _)| equal(code, before))?;
        Some(own.min(*until))
    }

    /// Whether the key's allow-list permits calls from `peer`. An empty list permits every call;
    /// any other list refuses an unknown address.
    pub fn allows(&self, peer: Option<IpAddr>) -> bool {
        // A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d.
        let peer = peer.map(|address| address.to_canonical());
        self.allowed_from.is_empty()
            || peer.is_some_and(|peer| self.allowed_from.iter().any(|net| net.contains(&peer)))
    }
}

/// Parses the allow-list of an API key's record.
///
/// # Errors
/// Returns the first entry that is neither an address nor a network (CIDR). The key must then be
/// refused.
pub fn allow_list<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Arc<[IpNet]>, String> {
    let read = |entry: &'a str| network(entry).ok_or_else(|| entry.to_owned());
    entries.into_iter().map(read).collect()
}
