//! Envelope encryption: each secret has a data key, which is encrypted under a key of the key ring.
//!
//! Both layers use AES-256-GCM (NIST SP 800-38D). The outer layer wraps the data key; its
//! associated data is the header with the ring key's id. The inner layer encrypts the secret; its
//! associated data is the secret's location. A secret copied to another location therefore
//! cannot be decrypted. When the ring gets a new key, only the 32 bytes of the data key are wrapped
//! again; the secret's ciphertext does not change.
//!
//! Layout, with lengths in bytes: version (1), length of the key's id (1), id, nonce (12), wrapped
//! data key (32 + 16), nonce (12), ciphertext and tag.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::{Error, KeyRing, random};

const VERSION: u8 = 1;
const WRAPPED: usize = NONCE_LEN + 32 + 16;

impl KeyRing {
    /// Encrypts `plain`, bound to `associated`.
    pub fn seal(&self, associated: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
        let (id, ring_key) = self.current()?;
        let data_key = random::<32>()?;
        let mut sealed = header(id)?;
        let wrapped = encrypt(ring_key, &sealed, &data_key)?;
        sealed.extend_from_slice(&wrapped);
        sealed.extend_from_slice(&encrypt(&aead(&data_key)?, associated, plain)?);
        Ok(sealed)
    }

    /// Decrypts the output of [`Self::seal`] with the same `associated`.
    pub fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let parts = Parts::of(sealed)?;
        let data_key = parts.data_key(self)?;
        decrypt(&aead(&data_key)?, associated, parts.body)
    }

    /// Wraps the data key under the ring's current key; `None` if that key already wraps it.
    pub fn rewrap(&self, sealed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let parts = Parts::of(sealed)?;
        let (id, ring_key) = self.current()?;
        if parts.id == id {
            return Ok(None);
        }
        let data_key = parts.data_key(self)?;
        let mut anew = header(id)?;
        let wrapped = encrypt(ring_key, &anew, &data_key)?;
        anew.extend_from_slice(&wrapped);
        anew.extend_from_slice(parts.body);
        Ok(Some(anew))
    }
}

struct Parts<'a> {
    header: &'a [u8],
    id: &'a str,
    wrapped: &'a [u8],
    body: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(sealed: &'a [u8]) -> Result<Self, Error> {
        let [VERSION, length, ..] = sealed else { return Err(Error::Sealed) };
        let (header, rest) =
            sealed.split_at_checked(2 + usize::from(*length)).ok_or(Error::Sealed)?;
        let id = header.get(2..).and_then(|id| str::from_utf8(id).ok()).ok_or(Error::Sealed)?;
        let (wrapped, body) = rest.split_at_checked(WRAPPED).ok_or(Error::Sealed)?;
        Ok(Self { header, id, wrapped, body })
    }

    fn data_key(&self, ring: &KeyRing) -> Result<[u8; 32], Error> {
        let key = ring.find(self.id).ok_or_else(|| Error::UnknownRingKey(self.id.to_owned()))?;
        decrypt(key, self.header, self.wrapped)?.try_into().map_err(|_| Error::Sealed)
    }
}

fn header(id: &str) -> Result<Vec<u8>, Error> {
    let length = u8::try_from(id.len()).map_err(|_| Error::Sealed)?;
    Ok([&[VERSION, length], id.as_bytes()].concat())
}

fn aead(key: &[u8; 32]) -> Result<LessSafeKey, Error> {
    UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new).map_err(|_| Error::Sealed)
}

fn encrypt(key: &LessSafeKey, associated: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
    let nonce = random::<NONCE_LEN>()?;
    let mut text = plain.to_vec();
    key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(associated),
        &mut text,
    )
    .map_err(|_| Error::Sealed)?;
    Ok([nonce.as_slice(), &text].concat())
}

fn decrypt(key: &LessSafeKey, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(Error::Sealed)?;
    let mut text = text.to_vec();
    let plain = key
        .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(associated), &mut text)
        .map_err(|_| Error::Sealed)?
        .len();
    text.truncate(plain);
    Ok(text)
}
