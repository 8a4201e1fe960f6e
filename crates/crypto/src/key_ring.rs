//! Key-encryption keys, the only secret outside the database.
//!
//! A ring is a text of `id:base64` entries, one on each line, or with commas in an environment
//! variable. `#` starts a comment. The first key encrypts; all keys decrypt. To rotate, put a new
//! key in front, rewrap the stored secrets, then remove the old key.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};

use super::{Error, random};

const LONGEST_ID: usize = 32;

/// Several versions of the key-encryption key, the current one first.
pub struct KeyRing {
    keys: Vec<(String, LessSafeKey)>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.keys.iter().map(|(id, _)| id.as_str()).collect();
        f.debug_struct("KeyRing").field("ids", &ids).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// Generates the text of a new ring with one key.
    pub fn generate() -> Result<String, Error> {
        let id = hex::encode(random::<4>()?);
        Ok(format!("{id}:{}\n", STANDARD.encode(random::<32>()?)))
    }

    /// Parses a ring. No error message contains any of its text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut keys: Vec<(String, LessSafeKey)> = Vec::new();
        let entries = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        for entry in entries.flat_map(|line| line.split(',')).map(str::trim) {
            if entry.is_empty() {
                continue;
            }
            let (id, secret) = entry
                .split_once(':')
                .ok_or_else(|| Error::Ring("an entry must be `id:base64`".to_owned()))?;
            if id.is_empty()
                || id.len() > LONGEST_ID
                || !id.bytes().all(|b| b.is_ascii_alphanumeric())
            {
                return Err(Error::Ring("an id must be 1 to 32 letters and digits".to_owned()));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(Error::Ring(format!("the id `{id}` is not unique")));
            }
            let wrong = || Error::Ring(format!("the key `{id}` is not base64 of 32 bytes"));
            let secret = STANDARD.decode(secret).map_err(|_| wrong())?;
            let key = UnboundKey::new(&AES_256_GCM, &secret).map_err(|_| wrong())?;
            keys.push((id.to_owned(), LessSafeKey::new(key)));
        }
        if keys.is_empty() {
            return Err(Error::Ring("it has no keys".to_owned()));
        }
        Ok(Self { keys })
    }

    /// Returns the id of the key for new secrets, and this key.
    pub(super) fn current(&self) -> Result<(&str, &LessSafeKey), Error> {
        let first = self.keys.first().ok_or_else(|| Error::Ring("it has no keys".to_owned()))?;
        Ok((&first.0, &first.1))
    }

    pub(super) fn find(&self, id: &str) -> Option<&LessSafeKey> {
        self.keys.iter().find(|(known, _)| known == id).map(|(_, key)| key)
    }
}
