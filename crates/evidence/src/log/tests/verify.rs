//! Compares proofs with the recursive definitions, and checks invalid proofs.

use proptest::prelude::*;

use super::{
    flipped,
    reference::{SMALL, Stored, mth, path, subproof},
};
use crate::log::{tree::*, verify::*};

/// Returns variants of `path` with one change: a flipped bit, a hash removed, added or swapped.
fn tampered(path: &[Hash]) -> Vec<Vec<Hash>> {
    let mut all = Vec::new();
    for at in 0..path.len() {
        for bit in 0..256 {
            let mut other = path.to_vec();
            other[at] = flipped(other[at], bit);
            all.push(other);
        }
        let mut fewer = path.to_vec();
        fewer.remove(at);
        all.push(fewer);
    }
    for at in 0..=path.len() {
        for hash in path.iter().copied().chain([[0; 32]]) {
            let mut more = path.to_vec();
            more.insert(at, hash);
            all.push(more);
        }
    }
    for at in 1..path.len() {
        let mut swapped = path.to_vec();
        swapped.swap(at - 1, at);
        all.push(swapped);
    }
    all
}

#[test]
fn inclusion_is_that_of_the_definition() {
    let tree = Stored::of(SMALL);
    for size in 1..=SMALL {
        let root = tree.root(size);
        for index in 0..size {
            let at = usize::try_from(index).unwrap();
            let (leaf, path) = (tree.leaves[at], path(at, tree.first(size)));
            assert_eq!(tree.inclusion(index, size), path, "{index} of {size}");
            assert!(verify_inclusion(&leaf, index, size, &path, &root), "{index} of {size}");
            for other in (0..=size).filter(|other| *other != index) {
                assert!(!verify_inclusion(&leaf, other, size, &path, &root));
            }
            assert!(!verify_inclusion(&flipped(leaf, at), index, size, &path, &root));
            assert!(!verify_inclusion(&leaf, index, size, &path, &flipped(root, at)));
        }
    }
}

#[test]
fn consistency_is_that_of_the_definition() {
    let tree = Stored::of(SMALL);
    for to in 0..=SMALL {
        let new = tree.root(to);
        for from in 0..=to {
            let old = tree.root(from);
            let at = usize::try_from(from).unwrap();
            let path = if from == 0 { Vec::new() } else { subproof(at, tree.first(to), true) };
            assert_eq!(tree.consistency(from, to), path, "{from} to {to}");
            assert!(verify_consistency(from, &old, to, &new, &path), "{from} to {to}");
            assert!(!verify_consistency(from, &flipped(old, at), to, &new, &path));
            // Every tree continues the empty tree: the root of the larger tree is not checked.
            assert_eq!(
                verify_consistency(from, &old, to, &flipped(new, at), &path),
                from == 0 && to != 0
            );
            if from != to {
                assert!(!verify_consistency(to, &new, from, &old, &path));
                assert!(!verify_consistency(from, &new, to, &old, &path));
            }
        }
    }
}

#[test]
fn no_tampered_path_verifies() {
    let tree = Stored::of(17);
    for size in 1..=17 {
        let root = tree.root(size);
        for index in 0..size {
            let leaf = tree.nodes[&NodeId { level: 0, index }];
            for path in tampered(&tree.inclusion(index, size)) {
                assert!(!verify_inclusion(&leaf, index, size, &path, &root), "{index} of {size}");
            }
        }
        for from in 0..=size {
            let old = tree.root(from);
            for path in tampered(&tree.consistency(from, size)) {
                assert!(!verify_consistency(from, &old, size, &root, &path), "{from} to {size}");
            }
        }
    }
}

/// The roots are computed from a path that is longer or shorter than the tree's size requires.
#[test]
fn no_root_makes_up_for_a_wrong_length() {
    let (a, b, c) = ([1; 32], [2; 32], [3; 32]);
    let pair = node_hash(&a, &b);
    assert!(verify_inclusion(&a, 0, 2, &[b], &pair));
    assert!(!verify_inclusion(&a, 0, 2, &[b, c], &node_hash(&c, &pair)));
    assert!(!verify_inclusion(&a, 0, 2, &[b, c], &node_hash(&pair, &c)));
    assert!(!verify_inclusion(&a, 0, 3, &[b], &pair));

    let (old, new) = (node_hash(&c, &a), node_hash(&c, &pair));
    assert!(verify_consistency(3, &old, 4, &new, &[a, b, c]));
    let (over_old, over_new) = (node_hash(&c, &old), node_hash(&c, &new));
    assert!(!verify_consistency(3, &over_old, 4, &over_new, &[a, b, c, c]));
    assert!(!verify_consistency(3, &old, 5, &new, &[a, b, c]));
    assert!(verify_consistency(2, &a, 4, &pair, &[b]));
    assert!(!verify_consistency(2, &a, 8, &pair, &[b]));
    assert!(!verify_consistency(3, &a, 2, &pair, &[a, b]));
}

#[test]
fn there_is_no_proof_of_what_cannot_be() {
    let any = |_| Some([0; 32]);
    for (index, size) in [(0, 0), (1, 1), (5, 3), (u64::MAX, u64::MAX)] {
        assert_eq!(inclusion_nodes(index, size), []);
        assert_eq!(inclusion_path(index, size, any), None);
        assert!(!verify_inclusion(&[0; 32], index, size, &[], &[0; 32]));
    }
    assert_eq!(consistency_nodes(4, 3), []);
    assert_eq!(consistency_path(4, 3, any), None);
    assert!(!verify_consistency(0, &[0; 32], 0, &[0; 32], &[]));
}

#[test]
fn the_largest_trees_overflow_nothing() {
    for size in [MAX_SIZE, 1 << 63, u64::MAX] {
        for index in [0, size / 2, size - 1] {
            let path = inclusion_path(index, size, |_| Some([0; 32])).unwrap();
            assert!((1..=64).contains(&path.len()));
            assert!(!verify_inclusion(&[0; 32], index, size, &path, &[0; 32]));
            let path = consistency_path(index, size, |_| Some([0; 32])).unwrap();
            assert!(!verify_consistency(index, &[0; 32], size, &[1; 32], &path));
        }
    }
}

/// Generates a size and two numbers below it.
fn tree_and_places() -> impl Strategy<Value = (u64, u64, u64)> {
    (SMALL..3000).prop_flat_map(|size| (Just(size), 0..size, 0..size))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn larger_trees_are_proved_too((size, index, from) in tree_and_places(), bit in 0..256_usize) {
        let tree = Stored::of(size);
        let (leaves, root) = (tree.first(size), tree.root(size));
        prop_assert_eq!(root, mth(leaves));

        let at = usize::try_from(index).unwrap();
        let found = tree.inclusion(index, size);
        prop_assert_eq!(&found, &path(at, leaves));
        prop_assert!(verify_inclusion(&leaves[at], index, size, &found, &root));
        let mut wrong = found.clone();
        let place = bit % wrong.len();
        wrong[place] = flipped(wrong[place], bit);
        prop_assert!(!verify_inclusion(&leaves[at], index, size, &wrong, &root));

        let from = from + 1;
        let old = tree.root(from);
        let found = tree.consistency(from, size);
        prop_assert_eq!(&found, &subproof(usize::try_from(from).unwrap(), leaves, true));
        prop_assert!(verify_consistency(from, &old, size, &root, &found));
        if !found.is_empty() {
            let mut wrong = found.clone();
            let place = bit % wrong.len();
            wrong[place] = flipped(wrong[place], bit);
            prop_assert!(!verify_consistency(from, &old, size, &root, &wrong));
        }
    }
}
