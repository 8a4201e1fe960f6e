//! Encrypts the URL of a push subscription under the key ring. The URL alone may suffice to send
//! push messages to the browser.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use authority_crypto::KeyRing;
use authority_model::schema::push_subscriptions;

use super::{custody::Keys, error::Error, inventory::sql};
use authority_store::Db;

impl Keys {
    /// Encrypts a subscription's URL, bound to the subscription.
    pub fn seal_push_endpoint(&self, id: &str, url: &str) -> Result<Vec<u8>, Error> {
        self.seal(&associated(id), url.as_bytes())
    }

    /// Decrypts the result of [`Self::seal_push_endpoint`] for the same subscription.
    pub fn open_push_endpoint(&self, id: &str, sealed: &[u8]) -> Result<String, Error> {
        let url = self.open(&associated(id), sealed)?;
        String::from_utf8(url).map_err(|_| authority_crypto::Error::Sealed.into())
    }

    /// Computes a code to find a subscription by its URL without decrypting the stored URLs.
    pub fn push_endpoint_code(&self, url: &str) -> [u8; 32] {
        self.mac("push-endpoint", url.as_bytes())
    }
}

fn associated(id: &str) -> Vec<u8> {
    format!("{id}|sealed_endpoint").into_bytes()
}

/// Rewraps the URLs under the ring's current key. Returns the number of rows.
pub(super) async fn rewrap(db: &mut Db, ring: &KeyRing) -> Result<usize, Error> {
    let rows: Vec<(String, Vec<u8>)> = push_subscriptions::table
        .select((push_subscriptions::id, push_subscriptions::sealed_endpoint))
        .for_update()
        .load(db)
        .await
        .map_err(sql)?;
    let mut count = 0;
    for (id, sealed) in rows {
        let Some(sealed) = ring.rewrap(&sealed)? else { continue };
        diesel::update(push_subscriptions::table.find(id))
            .set(push_subscriptions::sealed_endpoint.eq(sealed))
            .execute(db)
            .await
            .map_err(sql)?;
        count += 1;
    }
    Ok(count)
}
