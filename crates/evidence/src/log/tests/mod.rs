//! Compares the log with a literal implementation of RFC 6962, and parses malformed texts.

mod note;
mod proof;
mod reference;
mod tree;
mod verify;

use super::tree::Hash;

/// Parses a hash in hex.
fn hash(hex: &str) -> Hash {
    hex::decode(hex).unwrap().try_into().unwrap()
}

/// Returns the hash with one bit flipped. Bits are counted from 0.
fn flipped(mut hash: Hash, bit: usize) -> Hash {
    hash[bit / 8 % 32] ^= 1 << (bit % 8);
    hash
}
