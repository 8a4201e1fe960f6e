//! The transparency log: a Merkle tree, the notes that sign its head, the proofs given out.

pub mod note;
pub mod proof;
pub mod tree;
pub mod verify;

#[cfg(test)]
mod tests;
