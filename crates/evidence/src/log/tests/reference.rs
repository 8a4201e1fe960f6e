//! A literal implementation of RFC 6962, section 2.1, by recursion over all leaves; and a stored
//! tree.

use std::collections::HashMap;

use crate::log::tree::*;

/// Tests try every tree up to this number of leaves.
pub(super) const SMALL: u64 = 70;

/// `MTH(D[n])`, over leaf hashes.
pub(super) fn mth(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => empty_root(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(k(leaves.len()));
            node_hash(&mth(left), &mth(right))
        }
    }
}

/// The largest power of two that is smaller than `n`.
fn k(n: usize) -> usize {
    (0..usize::BITS).map(|bit| 1 << bit).rfind(|power| *power < n).unwrap()
}

/// `PATH(m, D[n])`.
pub(super) fn path(m: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let k = k(leaves.len());
    let (left, right) = leaves.split_at(k);
    let (mut path, aside) = if m < k { (path(m, left), right) } else { (path(m - k, right), left) };
    path.push(mth(aside));
    path
}

/// `SUBPROOF(m, D[n], b)`. With `b` true it is `PROOF(m, D[n])`.
pub(super) fn subproof(m: usize, leaves: &[Hash], b: bool) -> Vec<Hash> {
    if m == leaves.len() {
        return if b { Vec::new() } else { vec![mth(leaves)] };
    }
    let k = k(leaves.len());
    let (left, right) = leaves.split_at(k);
    let (mut proof, aside) =
        if m <= k { (subproof(m, left, b), right) } else { (subproof(m - k, right, false), left) };
    proof.push(mth(aside));
    proof
}

/// A tree with its nodes as the database would store them.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) frontier: Frontier,
    pub(super) leaves: Vec<Hash>,
    pub(super) nodes: HashMap<NodeId, Hash>,
}

impl Stored {
    pub(super) fn of(size: u64) -> Self {
        let mut made = Self::default();
        for number in 0..size {
            made.push(leaf_hash(&number.to_be_bytes()));
        }
        made
    }

    pub(super) fn push(&mut self, leaf: Hash) {
        self.leaves.push(leaf);
        let nodes = &mut self.nodes;
        self.frontier.push(leaf, |id, hash| assert_eq!(nodes.insert(id, hash), None)).unwrap();
    }

    /// Returns a look-up that finds only these nodes.
    pub(super) fn with(&self, ids: &[NodeId]) -> impl Fn(NodeId) -> Option<Hash> {
        assert!(ids.iter().all(|id| self.nodes.contains_key(id)), "not all of {ids:?} is stored");
        move |id| ids.contains(&id).then(|| self.nodes.get(&id).copied()).flatten()
    }

    pub(super) fn inclusion(&self, index: u64, size: u64) -> Vec<Hash> {
        inclusion_path(index, size, self.with(&inclusion_nodes(index, size))).unwrap()
    }

    pub(super) fn consistency(&self, from: u64, to: u64) -> Vec<Hash> {
        consistency_path(from, to, self.with(&consistency_nodes(from, to))).unwrap()
    }

    pub(super) fn first(&self, size: u64) -> &[Hash] {
        &self.leaves[..usize::try_from(size).unwrap()]
    }

    pub(super) fn root(&self, size: u64) -> Hash {
        let hashes = right_edge(size).into_iter().map(|id| self.nodes[&id]).collect();
        Frontier::new(size, hashes).unwrap().root()
    }
}
