//! The log's pure parts, against RFC 6962 read literally and against texts that are not quite
//! right.

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
