//! Compares the log with published crates that share no code with it.
//!
//! `tlog_tiles` checks the tree, its proofs and checkpoints; `signed_note` checks notes and keys.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use authority_crypto::{Pair, Signer};
use authority_evidence::log::{
    note::{Checkpoint, LogKey, SignedCheckpoint, signed},
    tree::{self, Frontier, Hash, NodeId, consistency_path, inclusion_path, leaf_hash},
    verify::{verify_consistency, verify_inclusion},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use signed_note::{Note, StandardSigner, StandardVerifier, Verifier as _, VerifierList};
use tlog_tiles::tlog::{self, HashReader, stored_hashes, tree_hash};

/// Every tree up to this many leaves is tried.
const SMALL: u64 = 40;
const ORIGIN: &str = "authority.example/log/acme";

/// The same tree in both implementations.
#[derive(Default)]
struct Both {
    frontier: Frontier,
    nodes: HashMap<NodeId, Hash>,
    theirs: Theirs,
    leaves: Vec<Hash>,
    /// The roots by size.
    roots: Vec<Hash>,
}

#[derive(Default)]
struct Theirs(Vec<tlog::Hash>);

impl HashReader for Theirs {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog::Hash>, tlog::Error> {
        Ok(indexes.iter().map(|at| self.0[usize::try_from(*at).unwrap()]).collect())
    }
}

impl Both {
    fn of(size: u64) -> Self {
        let mut both = Self::default();
        both.roots.push(both.frontier.root());
        for number in 0..size {
            let text = format!("leaf {number}");
            let leaf = leaf_hash(text.as_bytes());
            let nodes = &mut both.nodes;
            let store = |id, hash| {
                nodes.insert(id, hash);
            };
            both.frontier.push(leaf, store).unwrap();
            let new = stored_hashes(number, text.as_bytes(), &both.theirs).unwrap();
            both.theirs.0.extend(new);
            both.leaves.push(leaf);
            both.roots.push(both.frontier.root());
        }
        both
    }

    fn lookup(&self, id: NodeId) -> Option<Hash> {
        self.nodes.get(&id).copied()
    }
}

fn bytes(hashes: &[tlog::Hash]) -> Vec<Hash> {
    hashes.iter().map(|hash| hash.0).collect()
}

#[test]
fn roots_and_proofs_are_those_of_tlog_tiles() {
    let both = Both::of(SMALL);
    assert_eq!(tree::empty_root(), tree_hash(0, &both.theirs).unwrap().0);
    let at = |number: u64| usize::try_from(number).unwrap();
    for size in 1..=SMALL {
        let root = both.roots[at(size)];
        let their_root = tree_hash(size, &both.theirs).unwrap();
        assert_eq!(root, their_root.0, "{size}");
        for index in 0..size {
            let leaf = both.leaves[at(index)];
            let path = inclusion_path(index, size, |id| both.lookup(id)).unwrap();
            let theirs = tlog::prove_record(size, index, &both.theirs).unwrap();
            assert_eq!(path, bytes(&theirs), "{index} of {size}");
            assert!(verify_inclusion(&leaf, index, size, &path, &root), "{index} of {size}");
            for other in 0..size {
                let ours = verify_inclusion(&leaf, other, size, &path, &root);
                let found = tlog::check_record(&theirs, size, their_root, other, tlog::Hash(leaf));
                assert_eq!(ours, found.is_ok(), "{index} as {other} of {size}");
            }
        }
        for from in 1..=size {
            let path = consistency_path(from, size, |id| both.lookup(id)).unwrap();
            let theirs = tlog::prove_tree(size, from, &both.theirs).unwrap();
            assert_eq!(path, bytes(&theirs), "{from} to {size}");
            for other in 1..=size {
                let old = both.roots[at(other)];
                let ours = verify_consistency(from, &old, size, &root, &path);
                let found = tlog::check_tree(&theirs, size, their_root, from, tlog::Hash(old));
                assert_eq!(ours, found.is_ok(), "{from} with the root of {other} to {size}");
            }
        }
    }
}

#[test]
fn notes_and_keys_are_those_of_signed_note() {
    let private = Pair::ed25519().unwrap().private;
    let signer = Signer::read("kid", &private).unwrap();
    let key = LogKey { origin: ORIGIN.to_owned(), public_key: *signer.public_key() };
    let root = Both::of(5).frontier.root();
    let body = Checkpoint { origin: ORIGIN.to_owned(), size: 5, root }.body();
    let theirs = tlog_tiles::Checkpoint::new(ORIGIN, 5, tlog::Hash(root), "").unwrap();
    assert_eq!(body.as_bytes(), theirs.to_bytes());

    // PKCS #8 has the 32 bytes of the private key after 16 bytes of headers (RFC 8410, section 7).
    let secret = STANDARD.encode([&[1], &private[16..48]].concat());
    let secret = format!("PRIVATE+KEY+{ORIGIN}+{}+{secret}", hex::encode(key.id()));
    let mut note = Note::new(body.as_bytes(), &[]).unwrap();
    note.add_sigs(&[&StandardSigner::new(&secret).unwrap()]).unwrap();
    let ours = signed(&body, ORIGIN, key.id(), &signer.sign(body.as_bytes()));
    assert_eq!(ours.as_bytes(), note.to_bytes());
    assert_eq!(SignedCheckpoint::parse(&ours).unwrap().checkpoint.root, root);

    let verifier = StandardVerifier::new(&key.vkey()).unwrap();
    assert_eq!(verifier.key_id().to_be_bytes(), key.id());
    let known = VerifierList::new(vec![Box::new(verifier)]);
    let (verified, others) = note.verify(&known).unwrap();
    assert_eq!((verified.len(), others.len()), (1, 0));
    let altered = Note::from_bytes(ours.replace("\n5\n", "\n6\n").as_bytes()).unwrap();
    assert!(altered.verify(&known).is_err());
}
