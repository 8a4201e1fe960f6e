//! Cryptography: SHA-256, authentication codes, random bytes, envelope encryption, key pairs and
//! signatures.
//!
//! This is the only crate of the service that uses a cryptography library. It does not access the
//! database or files; its callers manage and store the keys.

mod digest;
mod envelope;
mod erased_names;
mod error;
pub mod jwk;
mod key_ring;
mod key_signer;
mod pair;
mod signer;
mod verify;

#[cfg(test)]
mod tests;

pub use digest::{
    DomainMac, Mac, equal, hex, hmac_sha256, random, sha256, sha256_of, sha384, sha512,
};
pub use erased_names::ErasedNames;
pub use error::Error;
pub use key_ring::KeyRing;
pub use key_signer::KeySigner;
pub use pair::{Algorithm, Pair};
pub use signer::{Es256Signer, Signer, TokenSigner};
pub use verify::{verify, verify_ed25519, verify_with_jwk};
