//! Checks a pack's place in its transparency log.

use serde_json::Value;

use super::{
    canonical::canonical_without,
    fault::{Fault, need},
    read::under,
    trust::LogTrust,
};
use crate::{
    digest_text,
    log::{
        note::{SignedCheckpoint, key_id, signed},
        proof::InclusionProof,
        tree,
        verify::verify_inclusion,
    },
};
use authority_crypto::verify_ed25519;

/// Checks a pack's place in its log.
///
/// # Errors
/// The leaf hash is not the pack's, or the proof does not lead to a root that the log signed.
pub(super) fn check(pack: &Value, trusted: LogTrust<'_>, path: &str) -> Result<(), Fault> {
    let at = |member: &str| format!("{path}.{member}");
    let log = &pack["log"];
    let text = |member: &str| log[member].as_str().unwrap_or_default();
    let leaf = tree::leaf_hash(&canonical_without(pack, "log")?);
    need(text("leaf_hash") == digest_text(&leaf), &at("leaf_hash"), "is not the pack's")?;
    let broken = |why: String| Fault::invalid(at("proof"), why);
    let proof = InclusionProof::parse(text("proof")).map_err(|why| broken(why.to_string()))?;
    let note = SignedCheckpoint::parse(&proof.checkpoint_note);
    let note = note.map_err(|why| broken(why.to_string()))?;
    let checkpoint = &note.checkpoint;
    // Signatures of others, such as witnesses, are refused: they would not be verified.
    let alone = signed(&note.body, &checkpoint.origin, note.key_id, &note.signature);
    need(alone == proof.checkpoint_note, &at("proof"), "must hold one signature, the log's")?;
    let plain = checkpoint.origin.bytes().all(|byte| byte.is_ascii_graphic());
    need(plain, &at("origin"), "must be printable ASCII")?;
    need(checkpoint.origin == text("origin"), &at("origin"), "is not the checkpoint's")?;
    need(log["index"].as_u64() == Some(proof.index), &at("index"), "is not the proof's")?;
    let within = proof.index < checkpoint.size && checkpoint.size < 1 << 53;
    need(within, &at("proof"), "the index is not within the checkpoint's size")?;
    let leads =
        verify_inclusion(&leaf, proof.index, checkpoint.size, &proof.path, &checkpoint.root);
    need(leads, &at("proof"), "does not lead to the checkpoint's root")?;
    check_signature(&note, trusted, path)
}

/// Checks a checkpoint's signature with the log's trusted key, if one is known.
///
/// `path` is empty for a checkpoint outside a pack.
pub(super) fn check_signature(
    note: &SignedCheckpoint,
    trusted: LogTrust<'_>,
    path: &str,
) -> Result<(), Fault> {
    let at = |member: &str| under(path, member);
    let checkpoint = &note.checkpoint;
    let public_key = match trusted {
        LogTrust::Unknown => return Ok(()),
        LogTrust::Key(key) => {
            let same = key.origin == checkpoint.origin;
            need(same, &at("origin"), "is not the log of the checkpoint key")?;
            let ours = note.key_id == key.id();
            need(ours, &at("proof"), "the checkpoint is signed with another key")?;
            key.public_key
        }
        LogTrust::AnyOf(keys) => {
            let signs = |key: &&[u8; 32]| note.key_id == key_id(&checkpoint.origin, key);
            let found = keys.iter().find(signs);
            let what = "the checkpoint is signed with no log key of the JWK set";
            *found.ok_or_else(|| Fault::invalid(at("proof"), what))?
        }
    };
    let holds = verify_ed25519(&public_key, note.body.as_bytes(), &note.signature);
    need(holds, &at("proof"), "the checkpoint's signature is not valid")
}
