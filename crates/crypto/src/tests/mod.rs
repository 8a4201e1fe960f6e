//! Tests keys and digests against the examples of their standards.

mod digest;
mod jwk;
mod key_ring;
mod key_signer;
