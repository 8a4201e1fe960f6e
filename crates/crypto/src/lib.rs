//! Everything made of keys and digests: SHA-256, authentication codes, randomness, envelope
//! encryption, key pairs, signatures.
//!
//! The only crate that names a cryptography library. It knows no store and no file: which keys
//! there are, and where they are kept, is its callers' business.

mod digest;
mod envelope;
mod error;
pub mod jwk;
mod key_ring;
mod pair;
mod signer;
mod verify;

#[cfg(test)]
mod tests;

pub use digest::{Mac, equal, random, sha256};
pub use error::Error;
pub use key_ring::KeyRing;
pub use pair::{Algorithm, Pair};
pub use signer::{Signer, TokenSigner};
pub use verify::{verify, verify_ed25519, verify_with_jwk};
