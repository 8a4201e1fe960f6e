//! Keyed codes of client addresses. They are stored in place of the addresses of anonymous callers.
//!
//! A code is a MAC under a random key that changes daily. All nodes share the day's key. It is
//! deleted when the day is over. After that, a code can't be traced to an address, even with the
//! whole database and the key ring.

use std::{net::IpAddr, sync::Arc};

use authority_api::error::ApiError;
use authority_crypto::{Mac, random};
use authority_keys::Keys;
use authority_model::schema::address_keys;
use authority_process::clock::Clock;
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use chrono::NaiveDate;
use diesel::prelude::*;
use parking_lot::RwLock;

/// The domain-separation label of the authentication codes.
const DOMAIN: &str = "client-address";

/// Computes codes of addresses.
pub(crate) struct AddressCodes {
    store: Store,
    keys: Keys,
    clock: Clock,
    /// The key of the current day.
    known: RwLock<Option<(NaiveDate, Arc<Mac>)>>,
}

impl AddressCodes {
    pub(crate) fn new(store: Store, keys: Keys, clock: Clock) -> Self {
        Self { store, keys, clock, known: RwLock::default() }
    }

    /// Returns the code of a client's address. IPv4 uses the address and IPv6 the /64 network,
    /// which belongs to one client. Clients without a known address share one code with calls
    /// within the process.
    pub(crate) async fn of(&self, client: Option<IpAddr>) -> Result<[u8; 32], ApiError> {
        Ok(self.key().await?.code(DOMAIN, &bucket(client)))
    }

    async fn key(&self) -> Result<Arc<Mac>, ApiError> {
        let today = self.clock.now().date_naive();
        let known = self.known.read().clone();
        if let Some((_, key)) = known.filter(|(day, _)| *day == today) {
            return Ok(key);
        }
        let associated = format!("address-key|{today}").into_bytes();
        let fresh: [u8; 32] = random()?;
        let sealed = self.keys.seal(&associated, &fresh)?;
        let kept = self.store.write_tx(&Scope::service(), async move |db| {
            // If two nodes insert a key, only the first insert succeeds. The next statement reads
            // that key.
            diesel::insert_into(address_keys::table)
                .values((address_keys::day.eq(today), address_keys::sealed.eq(sealed)))
                .on_conflict_do_nothing()
                .execute(db)
                .await?;
            let kept = address_keys::table.find(today).select(address_keys::sealed);
            Ok::<_, store::Error>(kept.first::<Vec<u8>>(db).await?)
        });
        let opened = self.keys.open(&associated, &kept.await?)?;
        let root = opened.try_into().map_err(|_| authority_crypto::Error::Sealed)?;
        let key = Arc::new(Mac::new(&root));
        *self.known.write() = Some((today, Arc::clone(&key)));
        Ok(key)
    }
}

fn bucket(client: Option<IpAddr>) -> Vec<u8> {
    match client.map(|client| client.to_canonical()) {
        None => Vec::new(),
        Some(IpAddr::V4(address)) => address.octets().to_vec(),
        Some(IpAddr::V6(address)) => address.octets()[..8].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own_bucket_or_its_network() {
        let bucket = |text: &str| bucket(Some(text.parse().unwrap()));
        assert_ne!(bucket("192.0.2.1"), bucket("192.0.2.2"));
        assert_eq!(bucket("192.0.2.1"), bucket("::ffff:192.0.2.1"));
        assert_eq!(bucket("2001:db8:0:1::1"), bucket("2001:db8:0:1:ffff::2"));
        assert_ne!(bucket("2001:db8:0:1::1"), bucket("2001:db8:0:2::1"));
        assert_ne!(bucket("0.0.0.0"), super::bucket(None));
    }
}
