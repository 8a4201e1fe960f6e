//! The Merkle tree of RFC 6962, section 2.1, stored as nodes that never change.
//!
//! The hash of each complete subtree is stored under its [`NodeId`]. The hash is final once the
//! subtree has its last leaf. Stored rows therefore never change. An incomplete subtree on the
//! right edge has no row: its hash is computed from the complete subtrees in it. The root and every
//! element of a proof are computed in the same way.

use authority_crypto::sha256;

/// SHA-256 of a leaf or a node.
pub type Hash = [u8; 32];

/// Errors of a stored tree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("a tree of {size} leaves has {wanted} hashes at its right edge, not {found}")]
    RightEdge { size: u64, wanted: u32, found: usize },
    #[error("a tree of {0} leaves is larger than this log may get")]
    TooLarge(u64),
}

/// The most leaves of a tree: the range of PostgreSQL's `bigint`.
///
/// With this limit, an inclusion path has at most 63 hashes, as a proof requires.
pub const MAX_SIZE: u64 = (1 << 63) - 1;

/// The position of a complete subtree. The subtree covers `1 << level` leaves from `index << level`
/// on. Level 0 has the hashes of the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    pub level: u8,
    pub index: u64,
}

/// Returns the hash of a leaf with these `bytes` (RFC 6962, section 2.1).
///
/// The prefix byte distinguishes leaves from nodes.
pub fn leaf_hash(bytes: &[u8]) -> Hash {
    sha256(&[&[0], bytes].concat())
}

/// Returns the hash of a node over its two subtrees (RFC 6962, section 2.1).
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], &left[..], &right[..]].concat())
}

/// Returns the root of the empty tree (RFC 6962, section 2.1).
pub fn empty_root() -> Hash {
    sha256(b"")
}

/// The complete subtrees at a tree's right edge, largest first. Appending leaves needs only them.
///
/// Also known as a compact range from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    hashes: Vec<Hash>,
}

impl Frontier {
    /// Restores the frontier of a stored tree.
    ///
    /// `hashes` are the result of [`Frontier::hashes`], or the stored hashes of the nodes of
    /// [`right_edge`].
    ///
    /// # Errors
    /// A tree of `size` leaves does not have this many hashes at its right edge, or is too large.
    pub fn new(size: u64, hashes: Vec<Hash>) -> Result<Self, Error> {
        if size > MAX_SIZE {
            return Err(Error::TooLarge(size));
        }
        // A tree has one complete subtree at its right edge for each set bit of its size.
        let (wanted, found) = (size.count_ones(), hashes.len());
        if u32::try_from(found) != Ok(wanted) {
            return Err(Error::RightEdge { size, wanted, found });
        }
        Ok(Self { size, hashes })
    }

    /// The number of leaves in the tree.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The hashes of the complete subtrees at the right edge, largest first.
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    /// Appends a leaf.
    ///
    /// `completed` receives every node that is now complete, from the leaf upwards. These are the
    /// nodes to store.
    ///
    /// # Errors
    /// The tree has [`MAX_SIZE`] leaves. It is then unchanged.
    pub fn push(
        &mut self,
        leaf: Hash,
        mut completed: impl FnMut(NodeId, Hash),
    ) -> Result<(), Error> {
        if self.size >= MAX_SIZE {
            return Err(Error::TooLarge(self.size));
        }
        let (mut id, mut hash) = (NodeId { level: 0, index: self.size }, leaf);
        completed(id, hash);
        // A right child completes its parent. The left child is then the last hash of the frontier.
        while id.index % 2 == 1
            && let Some(left) = self.hashes.pop()
        {
            hash = node_hash(&left, &hash);
            id = NodeId { level: id.level + 1, index: id.index / 2 };
            completed(id, hash);
        }
        self.hashes.push(hash);
        self.size += 1;
        Ok(())
    }

    /// Returns the root of the current tree.
    pub fn root(&self) -> Hash {
        fold(self.hashes.iter().copied()).unwrap_or_else(empty_root)
    }
}

/// The leaves from `begin` up to `end`, exclusive: a whole tree, or a subtree of RFC 6962's
/// recursion.
#[derive(Clone, Copy)]
struct Span {
    begin: u64,
    end: u64,
}

impl Span {
    fn len(self) -> u64 {
        self.end - self.begin
    }

    /// Splits the span into its two subtrees; `None` for a single leaf or no leaf.
    ///
    /// The left subtree is the largest complete tree that is smaller than the whole.
    fn split(self) -> Option<(Self, Self)> {
        let level = self.len().checked_sub(1)?.checked_ilog2()?;
        let middle = self.begin + (1 << level);
        Some((Self { end: middle, ..self }, Self { begin: middle, ..self }))
    }

    /// Returns the complete subtrees in the span, from left to right: one for each set bit of its
    /// length.
    fn nodes(self) -> impl Iterator<Item = NodeId> {
        let levels = (0..64_u8).rev().filter(move |level| self.len() >> level & 1 == 1);
        levels.scan(self.begin, |at, level| {
            let id = NodeId { level, index: *at >> level };
            *at += 1 << level;
            Some(id)
        })
    }

    /// Returns the span's hash, computed from stored nodes; `None` if a node is missing.
    fn root(self, lookup: impl Fn(NodeId) -> Option<Hash>) -> Option<Hash> {
        let hashes: Option<Vec<_>> = self.nodes().map(lookup).collect();
        fold(hashes?)
    }
}

/// Combines the hashes of complete subtrees (largest first) into one; `None` without hashes.
///
/// In RFC 6962 the right child of a node covers everything to the right of its left child. The
/// hashes are therefore combined starting from the right.
fn fold(hashes: impl IntoIterator<Item = Hash, IntoIter: DoubleEndedIterator>) -> Option<Hash> {
    hashes.into_iter().rev().reduce(|right, left| node_hash(&left, &right))
}

/// Returns the nodes of the [`Frontier`] of a tree with `size` leaves, in the same order.
///
/// With the hashes of these nodes, a tree or an earlier state of it can be restored from storage.
pub fn right_edge(size: u64) -> Vec<NodeId> {
    Span { begin: 0, end: size }.nodes().collect()
}

/// Returns the nodes to read for [`inclusion_path`]; none if the leaf does not exist.
pub fn inclusion_nodes(index: u64, size: u64) -> Vec<NodeId> {
    nodes(inclusion_spans(index, size))
}

/// Returns the proof that the leaf `index` is in the tree of `size` leaves.
///
/// The proof is `PATH(m, D[n])` of RFC 6962, section 2.1.1, from the leaf's sibling up to the
/// root's child. Returns `None` if the leaf does not exist, or `lookup` lacks a node of
/// [`inclusion_nodes`].
pub fn inclusion_path(
    index: u64,
    size: u64,
    lookup: impl Fn(NodeId) -> Option<Hash>,
) -> Option<Vec<Hash>> {
    path(inclusion_spans(index, size)?, lookup)
}

/// Returns the nodes to read for [`consistency_path`]; none if a proof is impossible or not needed.
pub fn consistency_nodes(from: u64, to: u64) -> Vec<NodeId> {
    nodes(consistency_spans(from, to))
}

/// Returns the proof that the tree of `from` leaves is the beginning of a larger one.
///
/// The larger tree has `to` leaves. The proof is `PROOF(m, D[n])` of RFC 6962, section 2.1.2. It is
/// empty if `from` is 0 or `to`, because these cases need no proof. `None` if `from` is larger than
/// `to`, or `lookup` lacks a node of [`consistency_nodes`].
pub fn consistency_path(
    from: u64,
    to: u64,
    lookup: impl Fn(NodeId) -> Option<Hash>,
) -> Option<Vec<Hash>> {
    path(consistency_spans(from, to)?, lookup)
}

fn nodes(spans: Option<Vec<Span>>) -> Vec<NodeId> {
    spans.into_iter().flatten().flat_map(Span::nodes).collect()
}

fn path(spans: Vec<Span>, lookup: impl Fn(NodeId) -> Option<Hash>) -> Option<Vec<Hash>> {
    spans.into_iter().map(|span| span.root(&lookup)).collect()
}

/// Returns the subtrees of the path: at each step down to the leaf, the subtree without the leaf.
fn inclusion_spans(index: u64, size: u64) -> Option<Vec<Span>> {
    if index >= size {
        return None;
    }
    let (mut at, mut spans) = (Span { begin: 0, end: size }, Vec::new());
    while let Some((left, right)) = at.split() {
        let (down, aside) = if index < right.begin { (left, right) } else { (right, left) };
        spans.push(aside);
        at = down;
    }
    spans.reverse();
    Some(spans)
}

/// Returns the subtrees of the proof.
///
/// Each step down to the old tree's right edge adds the subtree without this edge. The last
/// complete subtree of the old tree comes last.
fn consistency_spans(from: u64, to: u64) -> Option<Vec<Span>> {
    if from > to {
        return None;
    }
    if from == 0 {
        return Some(Vec::new());
    }
    let (mut at, mut spans) = (Span { begin: 0, end: to }, Vec::new());
    while at.end != from
        && let Some((left, right)) = at.split()
    {
        let (down, aside) = if from <= right.begin { (left, right) } else { (right, left) };
        spans.push(aside);
        at = down;
    }
    // If the subtree starts at leaf 0, it is the old tree itself, and the verifier knows its root.
    if at.begin != 0 {
        spans.push(at);
    }
    spans.reverse();
    Some(spans)
}
