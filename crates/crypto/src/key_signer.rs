//! Signatures with a private key of any of the supported kinds.

use std::fmt;

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeyPair as RsaPair,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    },
};
use serde_json::Value;

use super::{Algorithm, Error, jwk};

/// Signs as JOSE does (RFC 7518, RFC 8037), with the algorithm of its key.
pub struct KeySigner {
    algorithm: Algorithm,
    pair: AnyPair,
    public_jwk: Value,
}

enum AnyPair {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaPair),
}

impl KeySigner {
    /// Reads a PKCS #8 private key (RFC 5208): Ed25519, P-256, P-384, or RSA of 2048 to 8192 bits.
    ///
    /// # Errors
    /// Returns an error for any other key.
    pub fn read(pkcs8: &[u8]) -> Result<Self, Error> {
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8(pkcs8) {
            let public_jwk = jwk::ed25519(pair.public_key().as_ref());
            return Ok(Self {
                algorithm: Algorithm::EdDsa,
                pair: AnyPair::Ed25519(pair),
                public_jwk,
            });
        }
        for (algorithm, curve, kind) in [
            (Algorithm::Es256, "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
            (Algorithm::Es384, "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        ] {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(kind, pkcs8) {
                let public_jwk = jwk::elliptic(curve, pair.public_key().as_ref())?;
                return Ok(Self { algorithm, pair: AnyPair::Ecdsa(pair), public_jwk });
            }
        }
        let pair = RsaPair::from_pkcs8(pkcs8).map_err(|_| {
            Error::BadKey(
                "it is not an Ed25519, P-256, P-384 or RSA key (from 2048 bits) in PKCS #8",
            )
        })?;
        let public = pair.public_key();
        let public_jwk = jwk::rsa(
            public.modulus().big_endian_without_leading_zero(),
            public.exponent().big_endian_without_leading_zero(),
        );
        Ok(Self { algorithm: Algorithm::Rs256, pair: AnyPair::Rsa(pair), public_jwk })
    }

    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public key (RFC 7517), without `kid` and `alg`.
    pub fn public_jwk(&self) -> &Value {
        &self.public_jwk
    }

    /// Signs `bytes`. An ECDSA signature is r followed by s, as in JOSE. RSA uses PKCS #1 v1.5.
    ///
    /// # Errors
    /// The operating system did not provide random bytes.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        match &self.pair {
            AnyPair::Ed25519(pair) => Ok(pair.sign(bytes).as_ref().to_vec()),
            AnyPair::Ecdsa(pair) => {
                let signature = pair.sign(&random, bytes).map_err(|_| Error::Generation)?;
                Ok(signature.as_ref().to_vec())
            }
            AnyPair::Rsa(pair) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut out)
                    .map_err(|_| Error::Generation)?;
                Ok(out)
            }
        }
    }
}

impl fmt::Debug for KeySigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySigner").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}
