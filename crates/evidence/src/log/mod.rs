//! The transparency log: a Merkle tree, the notes that sign its head, and proofs.

pub mod note;
pub mod proof;
pub mod tree;
pub mod verify;

#[cfg(test)]
mod tests;
