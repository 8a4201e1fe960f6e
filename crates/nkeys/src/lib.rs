//! Keys of users of NATS: the part of the crate `nkeys` that `async-nats` calls.
//!
//! `async-nats` can sign only with the crate `nkeys`, which brings an implementation of Ed25519 and
//! its own random numbers. The workspace's `Cargo.toml` replaces that crate with this one. This one
//! signs with `authority-crypto`. If `async-nats` calls a function that it lacks, the build fails.

use authority_crypto::Signer;

/// The digits of base32 (RFC 4648, 6).
const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// The first five bits of a seed.
const SEED: u8 = 18 << 3;
/// The length of a seed in base32.
const SEED_DIGITS: usize = 58;

/// The reason why a text is not a seed. Messages do not contain the text, which is a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a seed has 58 characters of base32")]
    Malformed,
    #[error("the checksum of the seed does not match")]
    Checksum,
    #[error("the key is not a seed")]
    NotASeed,
    #[error(transparent)]
    Key(#[from] authority_crypto::Error),
}

/// A private key.
pub struct KeyPair {
    /// The kind of the key's owner: a user, an account and so on.
    kind: u8,
    signer: Signer,
}

impl KeyPair {
    /// Reads a seed: its kind in two bytes, 32 bytes and a checksum, in base32.
    ///
    /// # Errors
    /// The text is not a seed.
    pub fn from_seed(text: &str) -> Result<Self, Error> {
        let bytes = decoded(text).ok_or(Error::Malformed)?;
        let (body, checksum) = bytes.split_last_chunk().ok_or(Error::Malformed)?;
        if u16::from_le_bytes(*checksum) != crc16(body) {
            return Err(Error::Checksum);
        }
        let ([first, second], seed) = body.split_first_chunk().ok_or(Error::Malformed)?;
        if first & 0xf8 != SEED {
            return Err(Error::NotASeed);
        }
        let seed = seed.try_into().map_err(|_| Error::Malformed)?;
        let kind = ((first & 7) << 5) | (second >> 3);
        Ok(Self { kind, signer: Signer::from_seed("", seed)? })
    }

    /// Signs with Ed25519.
    ///
    /// # Errors
    /// Never fails. `async-nats` expects the replaced crate's return type.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.signer.sign(bytes).to_vec())
    }

    /// Returns the public key: its kind, 32 bytes and a checksum, in base32.
    pub fn public_key(&self) -> String {
        let body = [&[self.kind][..], self.signer.public_key()].concat();
        encoded(&[&body[..], &crc16(&body).to_le_bytes()].concat())
    }
}

/// Decodes base32 without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    if text.len() != SEED_DIGITS {
        return None;
    }
    let mut out = Vec::with_capacity(SEED_DIGITS * 5 / 8);
    let (mut bits, mut count) = (0_u16, 0);
    for letter in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == letter)?;
        bits = (bits << 5) | u16::try_from(digit).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    // 58 digits have two bits more than 36 bytes. These two bits must be zero.
    (bits == 0).then_some(out)
}

/// Encodes bytes as base32 without padding. The number of bytes must be a multiple of five.
fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 8 / 5);
    let (mut bits, mut count) = (0_u16, 0);
    for byte in bytes {
        bits = (bits << 8) | u16::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            out.push(char::from(DIGITS[usize::from(bits >> count)]));
            bits &= (1 << count) - 1;
        }
    }
    out
}

/// Returns the CRC-16 with the polynomial 0x1021 and the initial value zero (CRC-16/XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    let step = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ (u16::from(*byte) << 8), step))
}

#[cfg(test)]
mod tests {
    use authority_crypto::verify_ed25519;

    use super::*;

    /// The example of the replaced crate's tests.
    const ACCOUNT: &str = "SAAPN4W3EG6KCJGUQTKTJ5GSB5NHK5CHAJL4DBGFUM3HHROI4XUEP4OBK4";

    #[test]
    fn a_seed_has_its_public_key_and_signs() {
        let pair = KeyPair::from_seed(ACCOUNT).unwrap();
        assert_eq!(pair.public_key(), "ACODERUVFFAWZQDSS6SBIACUA5O6SXF7HJ3YTYXBALHZP3P7R4BUO4J2");
        let signature = pair.sign(b"nonce").unwrap().try_into().unwrap();
        assert!(verify_ed25519(pair.signer.public_key(), b"nonce", &signature));
    }

    #[test]
    fn what_is_not_a_seed_is_refused() {
        let altered = ACCOUNT.replace("SAAP", "SAAQ");
        assert!(matches!(KeyPair::from_seed(&altered), Err(Error::Checksum)));
        for text in ["", "SAAP", &ACCOUNT.to_lowercase(), &ACCOUNT.replace('4', "1")] {
            assert!(matches!(KeyPair::from_seed(text), Err(Error::Malformed)), "{text}");
        }
        let mut body = vec![15 << 3; 34];
        body.extend(crc16(&body).to_le_bytes());
        // Zeros make the length a multiple of five. 58 digits are 36 bytes and two zero bits.
        let padded = encoded(&[&body[..], &[0; 4]].concat());
        let private = &padded[..SEED_DIGITS];
        assert!(matches!(KeyPair::from_seed(private), Err(Error::NotASeed)));
    }
}
