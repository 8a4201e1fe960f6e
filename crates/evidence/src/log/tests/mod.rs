//! The log's pure parts, against a literal implementation of RFC 6962 and against malformed texts.

mod note;
mod proof;
mod reference;
mod tree;
mod verify;

use super::tree::Hash;

/// A hash from its hex.
fn hash(hex: &str) -> Hash {
    hex::decode(hex).unwrap().try_into().unwrap()
}

/// The same with one bit turned, counted from 0.
fn flipped(mut hash: Hash, bit: usize) -> Hash {
    hash[bit / 8 % 32] ^= 1 << (bit % 8);
    hash
}
