//! Tests the stored nodes of a tree, and the nodes that are read for proofs.

use super::{
    hash,
    reference::{SMALL, Stored, mth},
};
use crate::log::tree::*;

#[test]
fn roots_and_edges_are_those_of_the_definition() {
    let mut tree = Stored::default();
    for size in 0..=SMALL {
        let root = mth(&tree.leaves);
        assert_eq!(tree.frontier.size(), size);
        assert_eq!(tree.frontier.root(), root, "{size}");
        let edge: Vec<_> = right_edge(size).iter().map(|id| tree.nodes[id]).collect();
        assert_eq!(tree.frontier.hashes(), edge, "{size}");
        assert_eq!(Frontier::new(size, edge).as_ref(), Ok(&tree.frontier));
        tree.push(leaf_hash(&size.to_be_bytes()));
    }
    for (id, hash) in &tree.nodes {
        let begin = usize::try_from(id.index << id.level).unwrap();
        assert_eq!(*hash, mth(&tree.leaves[begin..begin + (1 << id.level)]), "{id:?}");
    }
}

#[test]
fn a_leaf_completes_itself_and_then_what_ends_with_it() {
    let mut frontier = Frontier::default();
    let mut rows = Vec::new();
    for _ in 0..4 {
        frontier.push([0; 32], |id, _| rows.push((id.level, id.index))).unwrap();
    }
    assert_eq!(rows, [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (1, 1), (2, 0)]);
}

#[test]
fn a_frontier_has_a_hash_for_each_bit_of_its_size() {
    let wrong = |size, wanted, found| Err(Error::RightEdge { size, wanted, found });
    assert_eq!(Frontier::new(0, vec![[0; 32]]), wrong(0, 0, 1));
    assert_eq!(Frontier::new(6, vec![[0; 32]; 3]), wrong(6, 2, 3));
    assert_eq!(Frontier::new(7, vec![[0; 32]; 2]), wrong(7, 3, 2));
    assert_eq!(Frontier::new(1 << 63, vec![[0; 32]]), Err(Error::TooLarge(1 << 63)));
}

#[test]
fn a_frontier_stops_at_its_largest_size() {
    let mut frontier = Frontier::new(MAX_SIZE, vec![[0; 32]; 63]).unwrap();
    let before = frontier.clone();
    let pushed = frontier.push([0; 32], |id, _| panic!("{id:?}"));
    assert_eq!(pushed, Err(Error::TooLarge(MAX_SIZE)));
    assert_eq!(frontier, before);
}

#[test]
fn every_named_node_is_needed() {
    let tree = Stored::of(13);
    for index in 0..13 {
        let ids = inclusion_nodes(index, 13);
        for at in 0..ids.len() {
            let mut ids = ids.clone();
            ids.remove(at);
            assert_eq!(inclusion_path(index, 13, tree.with(&ids)), None);
        }
        let ids = consistency_nodes(index, 13);
        for at in 0..ids.len() {
            let mut ids = ids.clone();
            ids.remove(at);
            assert_eq!(consistency_path(index, 13, tree.with(&ids)), None);
        }
    }
}

/// The tree from the reference tests of Certificate Transparency: eight leaves, and the root after
/// each of them.
#[test]
fn the_reference_tree_has_its_known_hashes() {
    let leaves = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut tree = Stored::default();
    assert_eq!(tree.frontier.root(), hash(roots[0]));
    for (leaf, root) in leaves.iter().zip(&roots[1..]) {
        tree.push(leaf_hash(&hex::decode(leaf).unwrap()));
        assert_eq!(tree.frontier.root(), hash(root));
    }
    let first = [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ];
    assert_eq!(tree.inclusion(0, 8), first.map(hash));
    let grown = [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ];
    assert_eq!(tree.consistency(6, 8), grown.map(hash));
}
