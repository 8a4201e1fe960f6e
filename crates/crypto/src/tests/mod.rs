//! What keys and digests promise, against the examples of their standards.

mod digest;
mod jwk;
mod key_ring;
