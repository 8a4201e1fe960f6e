//! Signatures with private keys.

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeyPair as RsaPair,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    },
};

use super::Error;

/// Signs with Ed25519 (RFC 8032). A signature takes about 6 µs. Any number of threads can share a
/// signer.
pub struct Signer {
    kid: Arc<str>,
    pair: Ed25519KeyPair,
    public: [u8; 32],
}

impl Signer {
    pub fn read(kid: &str, pkcs8: &[u8]) -> Result<Self, Error> {
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8)
            .map_err(|_| Error::BadKey("it is not an Ed25519 key in PKCS #8"))?;
        Self::of(kid, pair)
    }

    /// Derives the key from its seed (the private key of RFC 8032, 5.1.5).
    pub fn from_seed(kid: &str, seed: &[u8; 32]) -> Result<Self, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| Error::BadKey("it is not the seed of an Ed25519 key"))?;
        Self::of(kid, pair)
    }

    fn of(kid: &str, pair: Ed25519KeyPair) -> Result<Self, Error> {
        let public = pair.public_key().as_ref().try_into();
        let public = public.map_err(|_| Error::BadKey("its public half is not 32 bytes"))?;
        Ok(Self { kid: kid.into(), pair, public })
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the `kid` without copying its text.
    pub fn shared_kid(&self) -> Arc<str> {
        Arc::clone(&self.kid)
    }

    pub fn public_key(&self) -> &[u8; 32] {
        &self.public
    }

    pub fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        let mut out = [0; 64];
        out.copy_from_slice(self.pair.sign(bytes).as_ref());
        out
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// Signs tokens of the development identity provider with RS256 (RFC 7518, 3.3).
pub struct TokenSigner {
    kid: Arc<str>,
    pair: RsaPair,
}

impl TokenSigner {
    pub fn read(kid: &str, pkcs8: &[u8]) -> Result<Self, Error> {
        let pair = RsaPair::from_pkcs8(pkcs8)
            .map_err(|_| Error::BadKey("it is not an RSA key in PKCS #8"))?;
        Ok(Self { kid: kid.into(), pair })
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Signs `bytes`. Takes about 1 ms.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), bytes, &mut out)
            .map_err(|_| Error::Generation)?;
        Ok(out)
    }
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSigner").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// Signs with ES256 (RFC 7518, 3.4).
pub struct Es256Signer {
    pair: EcdsaKeyPair,
    point: [u8; 65],
}

impl Es256Signer {
    pub fn read(pkcs8: &[u8]) -> Result<Self, Error> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8)
            .map_err(|_| Error::BadKey("it is not a P-256 key in PKCS #8"))?;
        let point = pair.public_key().as_ref().try_into();
        let point = point.map_err(|_| Error::BadKey("its public half is not 65 bytes"))?;
        Ok(Self { pair, point })
    }

    /// Returns the public key in the uncompressed form of SEC 1: 4, x, y.
    pub fn public_point(&self) -> &[u8; 65] {
        &self.point
    }

    /// Signs `bytes`. Returns r followed by s, as in JOSE.
    pub fn sign(&self, bytes: &[u8]) -> Result<[u8; 64], Error> {
        let signature = self.pair.sign(&SystemRandom::new(), bytes);
        let signature = signature.map_err(|_| Error::Generation)?;
        signature.as_ref().try_into().map_err(|_| Error::Generation)
    }
}

impl fmt::Debug for Es256Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Es256Signer").finish_non_exhaustive()
    }
}
