//! SHA-2, message authentication codes and random bytes.

use ring::{
    digest::{Context, SHA256, SHA384, SHA512, digest},
    hmac,
    rand::{SecureRandom, SystemRandom},
};

use super::Error;

/// SHA-256 (FIPS 180-4).
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

/// SHA-384 (FIPS 180-4).
pub fn sha384(bytes: &[u8]) -> [u8; 48] {
    let mut out = [0; 48];
    out.copy_from_slice(digest(&SHA384, bytes).as_ref());
    out
}

/// SHA-512 (FIPS 180-4).
pub fn sha512(bytes: &[u8]) -> [u8; 64] {
    let mut out = [0; 64];
    out.copy_from_slice(digest(&SHA512, bytes).as_ref());
    out
}

/// SHA-256 of the parts, one after the other.
pub fn sha256_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}

/// Returns `N` random bytes from the operating system.
pub fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut out = [0; N];
    SystemRandom::new().fill(&mut out).map_err(|_| Error::Random)?;
    Ok(out)
}

/// Compares in constant time, to avoid revealing where two texts differ.
pub fn equal(left: &[u8], right: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(left, right).is_ok()
}

/// Computes HMAC-SHA-256 (RFC 2104) under a key shared with another party.
///
/// For codes that only the service checks, see [`Mac`].
pub fn hmac_sha256(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    code(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes)
}

fn code(key: &hmac::Key, bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(hmac::sign(key, bytes).as_ref());
    out
}

/// HMAC-SHA-256 (RFC 2104) under one root secret.
///
/// Each domain has a separate key: a code for one use is not valid for another.
pub struct Mac(hmac::Key);

impl Mac {
    pub fn new(root: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, root))
    }

    pub fn code(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        self.within(domain).code(bytes)
    }

    /// Returns the codes of one domain. The key of the domain is derived only once.
    pub fn within(&self, domain: &str) -> DomainMac {
        let key = code(&self.0, domain.as_bytes());
        DomainMac(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }
}

/// The codes of a [`Mac`] in one domain.
pub struct DomainMac(hmac::Key);

impl DomainMac {
    pub fn code(&self, bytes: &[u8]) -> [u8; 32] {
        code(&self.0, bytes)
    }
}

/// Returns bytes as lower-case hexadecimal digits. `hex::encode` is slower: it writes single chars.
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = vec![0; 2 * bytes.len()];
    match hex::encode_to_slice(bytes, &mut digits) {
        Ok(()) => String::from_utf8(digits).unwrap_or_default(),
        Err(_) => hex::encode(bytes), // impossible: the buffer has the right length
    }
}
