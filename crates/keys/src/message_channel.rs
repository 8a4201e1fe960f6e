//! Encrypts the URL of a chat's webhook under the key ring. The URL alone suffices to write to the
//! chat.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use authority_crypto::KeyRing;
use authority_model::schema::message_channels;

use super::{custody::Keys, error::Error, inventory::sql};
use authority_store::Db;

impl Keys {
    /// Encrypts the URL of a channel, bound to the channel.
    pub fn seal_message_url(&self, id: &str, url: &str) -> Result<Vec<u8>, Error> {
        self.seal(&associated(id), url.as_bytes())
    }

    /// Decrypts the result of [`Self::seal_message_url`] for the same channel.
    pub fn open_message_url(&self, id: &str, sealed: &[u8]) -> Result<String, Error> {
        let url = self.open(&associated(id), sealed)?;
        String::from_utf8(url).map_err(|_| authority_crypto::Error::Sealed.into())
    }
}

fn associated(id: &str) -> Vec<u8> {
    format!("{id}|sealed_url").into_bytes()
}

/// Rewraps the URLs under the ring's current key. Returns the number of rows.
pub(super) async fn rewrap(db: &mut Db, ring: &KeyRing) -> Result<usize, Error> {
    let rows: Vec<(String, Vec<u8>)> = message_channels::table
        .filter(message_channels::sealed_url.is_not_null())
        .select((message_channels::id, message_channels::sealed_url.assume_not_null()))
        .for_update()
        .load(db)
        .await
        .map_err(sql)?;
    let mut count = 0;
    for (id, sealed) in rows {
        let Some(sealed) = ring.rewrap(&sealed)? else { continue };
        diesel::update(message_channels::table.find(id))
            .set(message_channels::sealed_url.eq(sealed))
            .execute(db)
            .await
            .map_err(sql)?;
        count += 1;
    }
    Ok(count)
}
