//! Verifies proofs: that a leaf is in a tree, and that one tree continues another.
//!
//! The algorithms are in RFC 9162, sections 2.1.3.2 and 2.1.4.2, for the trees of RFC 6962. They do
//! not depend on how a tree is stored.

use super::tree::{Hash, empty_root, node_hash};

/// Whether `path` proves that a leaf is in a tree (RFC 9162, section 2.1.3.2).
///
/// `leaf` is the hash of the leaf with number `index`. The tree has `size` leaves and the root
/// `root`. A path of the wrong length is not a proof.
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last, mut hash) = (index, size - 1, *leaf);
    for aside in path {
        if last == 0 {
            return false;
        }
        if node % 2 == 1 || node == last {
            hash = node_hash(aside, &hash);
            // The last node of a level may have no sibling. It then moves up unchanged until it has
            // a sibling.
            while node % 2 == 0 && node != 0 {
                (node, last) = (node / 2, last / 2);
            }
        } else {
            hash = node_hash(&hash, aside);
        }
        (node, last) = (node / 2, last / 2);
    }
    last == 0 && hash == *root
}

/// Whether `path` proves that one tree continues another (RFC 9162, section 2.1.4.2).
///
/// The tree of `from` leaves must be the beginning of the tree of `to` leaves. A path of the wrong
/// length is not a proof.
///
/// Every tree continues itself and the empty tree. In both cases the path must be empty. The empty
/// tree must have the root [`empty_root`].
pub fn verify_consistency(
    from: u64,
    from_root: &Hash,
    to: u64,
    to_root: &Hash,
    path: &[Hash],
) -> bool {
    if from == to {
        return path.is_empty() && from_root == to_root && (from != 0 || *to_root == empty_root());
    }
    if from > to {
        return false;
    }
    if from == 0 {
        return path.is_empty() && *from_root == empty_root();
    }
    // If the old tree is complete, it is a subtree of the new one, and the path omits its root.
    let (first, rest) = match path.split_first() {
        Some(_) if from.is_power_of_two() => (from_root, path),
        Some(split) => split,
        None => return false,
    };
    // Otherwise the path starts with the last complete subtree of the old tree.
    let level = from.trailing_zeros();
    let (mut node, mut last) = ((from - 1) >> level, (to - 1) >> level);
    let (mut old, mut new) = (*first, *first);
    for aside in rest {
        if last == 0 {
            return false;
        }
        if node % 2 == 1 || node == last {
            // The hash is to the left of the old tree's edge. It is part of both trees.
            (old, new) = (node_hash(aside, &old), node_hash(aside, &new));
            while node % 2 == 0 && node != 0 {
                (node, last) = (node / 2, last / 2);
            }
        } else {
            new = node_hash(&new, aside);
        }
        (node, last) = (node / 2, last / 2);
    }
    last == 0 && old == *from_root && new == *to_root
}
