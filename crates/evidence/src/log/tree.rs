//! The Merkle tree of RFC 6962, section 2.1, kept as the nodes that never change again.
//!
//! The hash of each complete subtree is stored under its [`NodeId`]. It is final once the last of
//! its leaves is there, so rows are only added. An incomplete subtree on the right edge has no row;
//! its hash is folded from the complete ones in it. The same folding gives the root and every
//! element of a proof.

use authority_crypto::sha256;

/// SHA-256, of a leaf or of a node.
pub type Hash = [u8; 32];

/// Errors of a stored tree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("a tree of {size} leaves has {wanted} hashes at its right edge, not {found}")]
    RightEdge { size: u64, wanted: u32, found: usize },
    #[error("a tree of {0} leaves is larger than this log may get")]
    TooLarge(u64),
}

/// The most leaves of a tree: the range of PostgreSQL's `bigint`. So no inclusion path is longer
/// than 63 hashes, the most that a proof may have.
pub const MAX_SIZE: u64 = (1 << 63) - 1;

/// The position of a complete subtree: it covers `1 << level` leaves from `index << level` on.
/// Level 0 is the leaf hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    pub level: u8,
    pub index: u64,
}

/// The hash of a leaf with these `bytes` (RFC 6962, section 2.1). The prefix distinguishes leaves
/// from nodes.
pub fn leaf_hash(bytes: &[u8]) -> Hash {
    sha256(&[&[0], bytes].concat())
}

/// The hash of a node over its two subtrees (RFC 6962, section 2.1).
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], &left[..], &right[..]].concat())
}

/// The root of the empty tree (RFC 6962, section 2.1).
pub fn empty_root() -> Hash {
    sha256(b"")
}

/// What appending to a tree needs: the complete subtrees at its right edge, largest first. Also
/// known as a compact range from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    hashes: Vec<Hash>,
}

impl Frontier {
    /// The frontier of a stored tree; `hashes` are those of [`Frontier::hashes`], or those stored
    /// under [`right_edge`].
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

    /// Appends a leaf. `completed` receives every node that is now complete, the leaf first and
    /// then upwards: the rows to store.
    ///
    /// # Errors
    /// The tree has [`MAX_SIZE`] leaves; then nothing has changed.
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
        // A right child completes its parent; its left sibling is the last hash of the edge.
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

    /// The root of the present tree.
    pub fn root(&self) -> Hash {
        fold(self.hashes.iter().copied()).unwrap_or_else(empty_root)
    }
}

/// The leaves from `begin` to before `end`: always a subtree of RFC 6962's recursion, or a tree.
#[derive(Clone, Copy)]
struct Span {
    begin: u64,
    end: u64,
}

impl Span {
    fn len(self) -> u64 {
        self.end - self.begin
    }

    /// Its two subtrees; the left one is the largest complete tree that is smaller than the whole.
    /// `None` for a single leaf or no leaf.
    fn split(self) -> Option<(Self, Self)> {
        let level = self.len().checked_sub(1)?.checked_ilog2()?;
        let middle = self.begin + (1 << level);
        Some((Self { end: middle, ..self }, Self { begin: middle, ..self }))
    }

    /// Its complete subtrees, from left to right: one for each set bit of its length.
    fn nodes(self) -> impl Iterator<Item = NodeId> {
        let levels = (0..64_u8).rev().filter(move |level| self.len() >> level & 1 == 1);
        levels.scan(self.begin, |at, level| {
            let id = NodeId { level, index: *at >> level };
            *at += 1 << level;
            Some(id)
        })
    }

    /// Its hash, folded from stored nodes; `None` if one of them is missing.
    fn root(self, lookup: impl Fn(NodeId) -> Option<Hash>) -> Option<Hash> {
        let hashes: Option<Vec<_>> = self.nodes().map(lookup).collect();
        fold(hashes?)
    }
}

/// The hash over complete subtrees, largest first; `None` over none. In RFC 6962 the right child of
/// a node covers everything right of its left child, so the folding is from the right.
fn fold(hashes: impl IntoIterator<Item = Hash, IntoIter: DoubleEndedIterator>) -> Option<Hash> {
    hashes.into_iter().rev().reduce(|right, left| node_hash(&left, &right))
}

/// The nodes of the [`Frontier`] of the tree of `size` leaves, in its order, to restore a tree or
/// an earlier state of it from storage.
pub fn right_edge(size: u64) -> Vec<NodeId> {
    Span { begin: 0, end: size }.nodes().collect()
}

/// The nodes to read for [`inclusion_path`]; none if there is no such leaf.
pub fn inclusion_nodes(index: u64, size: u64) -> Vec<NodeId> {
    nodes(inclusion_spans(index, size))
}

/// The proof that the leaf `index` is in the tree of `size` leaves: `PATH(m, D[n])` of RFC 6962,
/// section
/// 2.1.1, from the leaf's sibling up to the root's child.
///
/// `None` if there is no such leaf, or `lookup` lacks one of [`inclusion_nodes`].
pub fn inclusion_path(
    index: u64,
    size: u64,
    lookup: impl Fn(NodeId) -> Option<Hash>,
) -> Option<Vec<Hash>> {
    path(inclusion_spans(index, size)?, lookup)
}

/// The nodes to read for [`consistency_path`]; none if no proof is possible or needed.
pub fn consistency_nodes(from: u64, to: u64) -> Vec<NodeId> {
    nodes(consistency_spans(from, to))
}

/// The proof that the tree of `from` leaves is the beginning of that of `to` leaves: `PROOF(m,
/// D[n])` of RFC 6962, section 2.1.2. Empty if `from` is 0 or `to`, since then nothing has to be
/// proved.
///
/// `None` if `from` is larger than `to`, or `lookup` lacks one of [`consistency_nodes`].
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

/// The subtrees whose hashes are the path: at each step down to the leaf, the one not taken.
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

/// The subtrees whose hashes are the proof: at each step down to the old tree's right edge, the one
/// not taken; and at the end of the steps, the last of the old tree's complete subtrees.
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
    // From leaf 0 on it is the old tree itself, whose root the verifier knows.
    if at.begin != 0 {
        spans.push(at);
    }
    spans.reverse();
    Some(spans)
}
