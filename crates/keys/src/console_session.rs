//! Encrypts the console's session tokens and unfinished sign-ins under the key ring.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use authority_crypto::KeyRing;
use authority_model::schema::console_sessions;

use super::{custody::Keys, error::Error, inventory::sql};
use authority_store::Db;

/// The associated data of an unfinished sign-in, which is stored in a cookie and not in the
/// database.
const SIGN_IN: &[u8] = b"console-sign-in";

impl Keys {
    /// Encrypts a session's tokens, bound to the session.
    pub fn seal_console_session(&self, digest: &[u8; 32], tokens: &[u8]) -> Result<Vec<u8>, Error> {
        self.seal(&associated(digest), tokens)
    }

    /// Decrypts the result of [`Self::seal_console_session`] for the same session.
    pub fn open_console_session(&self, digest: &[u8; 32], sealed: &[u8]) -> Result<Vec<u8>, Error> {
        self.open(&associated(digest), sealed)
    }

    /// Encrypts an unfinished sign-in.
    pub fn seal_sign_in(&self, plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.seal(SIGN_IN, plain)
    }

    /// Decrypts the result of [`Self::seal_sign_in`].
    pub fn open_sign_in(&self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        self.open(SIGN_IN, sealed)
    }
}

fn associated(digest: &[u8]) -> Vec<u8> {
    [b"console_sessions|".as_slice(), digest].concat()
}

/// Rewraps the tokens under the ring's current key. Returns the number of rows.
pub(super) async fn rewrap(db: &mut Db, ring: &KeyRing) -> Result<usize, Error> {
    let rows: Vec<(Vec<u8>, Vec<u8>)> = console_sessions::table
        .select((console_sessions::digest, console_sessions::sealed_tokens))
        .for_update()
        .load(db)
        .await
        .map_err(sql)?;
    let mut count = 0;
    for (digest, sealed) in rows {
        let Some(sealed) = ring.rewrap(&sealed)? else { continue };
        diesel::update(console_sessions::table.find(digest))
            .set(console_sessions::sealed_tokens.eq(sealed))
            .execute(db)
            .await
            .map_err(sql)?;
        count += 1;
    }
    Ok(count)
}
