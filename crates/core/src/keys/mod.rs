//! Keys and everything made of them: signing, sealing, codes of authentication, randomness.
//!
//! The only room that names a cryptography library. Private keys are at rest under envelope
//! encryption (`envelope.rs`, `key_ring.rs`), in memory ready for use (`custody.rs`).

mod custody;
mod digest;
mod envelope;
mod error;
mod inventory;
mod jwk;
mod key_ring;
mod pair;
mod public_key;
mod rotation;
mod signer;

pub use custody::{Keys, Purpose};
pub use digest::{Mac, equal, random, sha256};
pub use error::Error;
pub use inventory::{NewKey, SigningKey};
pub use jwk::{kid, thumbprint};
pub use key_ring::KeyRing;
pub use pair::{Algorithm, Pair};
pub use public_key::{PublicKey, Status, verify_ed25519, verify_with_jwk};
pub use rotation::{NewRotation, Rotation};
pub use signer::{Signer, TokenSigner};
