//! Generates key pairs.

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair as RsaPair, KeySize},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair,
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{Error, jwk};

/// The supported algorithms of RFC 7518 and RFC 8037.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    EdDsa,
    Es256,
    Es384,
    Rs256,
}

impl Algorithm {
    pub const ALL: [Self; 4] = [Self::EdDsa, Self::Es256, Self::Es384, Self::Rs256];

    /// The algorithm's name in JOSE.
    pub fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }
}

/// A new private key in PKCS #8 (RFC 5958) and its public half as a JWK (without `kid` and `alg`).
pub struct Pair {
    pub private: Vec<u8>,
    pub public_jwk: Value,
}

impl Pair {
    /// An Ed25519 pair (RFC 8032), for the service's own signatures.
    pub fn ed25519() -> Result<Self, Error> {
        let pair = Ed25519KeyPair::generate().map_err(|_| Error::Generation)?;
        let private = pair.to_pkcs8().map_err(|_| Error::Generation)?.as_ref().to_vec();
        Ok(Self { private, public_jwk: jwk::ed25519(pair.public_key().as_ref()) })
    }

    /// Generates a 2048-bit RSA pair. This takes about 30 ms: do not call it on an async thread.
    pub fn rsa() -> Result<Self, Error> {
        let pair = RsaPair::generate(KeySize::Rsa2048).map_err(|_| Error::Generation)?;
        let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).map_err(|_| Error::Generation)?;
        let public = pair.public_key();
        let public_jwk = jwk::rsa(
            public.modulus().big_endian_without_leading_zero(),
            public.exponent().big_endian_without_leading_zero(),
        );
        Ok(Self { private: der.as_ref().to_vec(), public_jwk })
    }

    /// Generates a pair for a key that a client creates in the inventory of signing keys.
    ///
    /// The specification of that API requires P-256 for `EdDSA` and `ES256`, P-384 for `ES384`, and
    /// 2048-bit RSA for `RS256`. The service itself does not sign with these keys.
    pub fn inventory(algorithm: Algorithm) -> Result<Self, Error> {
        let (curve, kind) = match algorithm {
            Algorithm::Rs256 => return Self::rsa(),
            Algorithm::Es384 => ("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDsa | Algorithm::Es256 => ("P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
        };
        let pair = EcdsaKeyPair::generate(kind).map_err(|_| Error::Generation)?;
        let private = pair.to_pkcs8v1().map_err(|_| Error::Generation)?.as_ref().to_vec();
        Ok(Self { private, public_jwk: jwk::elliptic(curve, pair.public_key().as_ref())? })
    }

    /// Returns the private key as PEM (RFC 7468).
    pub fn private_pem(&self) -> String {
        let lines = STANDARD.encode(&self.private).into_bytes();
        let lines = lines.chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
        format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n")
    }
}
