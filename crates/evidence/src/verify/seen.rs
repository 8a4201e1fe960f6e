//! Compares the log of a pack with a checkpoint that was seen elsewhere.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    fault::{Fault, named, need},
    log, read, signed,
    trust::Trust,
};
use crate::{
    bundle::BUNDLE_KIND,
    log::{
        note::{Checkpoint, SignedCheckpoint},
        proof::InclusionProof,
        tree::Hash,
        verify::verify_consistency,
    },
    pack::PACK_KIND,
};

/// Verifies that a file's checkpoint and one seen elsewhere are of the same history.
///
/// The file is a pack or a bundle. `seen` is a signed note, or an audit stream's message that
/// contains a note. The file itself must be verified separately.
///
/// `consistency` is the response of `GET /v1/log/{slug}/consistency` for the two sizes.
///
/// # Errors
/// The log has two histories, or the bytes have another form. If `consistency` is `None` and the
/// sizes differ, [`Fault::Unproven`].
pub fn verify_seen(
    file: &[u8],
    trust: &Trust,
    seen: &[u8],
    consistency: Option<&[u8]>,
) -> Result<(), Fault> {
    let own = own(file)?;
    let seen = noted(seen)?;
    let published = trust.keys.as_ref().map(signed::log_keys).unwrap_or_default();
    log::check_signature(&seen, trust.log(&published), "").map_err(|fault| match fault {
        Fault::Invalid { path, what, .. } => {
            Fault::invalid(format!("in the checkpoint seen elsewhere: {}", named(&path)), what)
        }
        other => other,
    })?;
    let seen = seen.checkpoint;
    let (path, what) = ("the checkpoint seen elsewhere", "is of the log");
    need(
        own.origin == seen.origin,
        path,
        &format!("{what} `{}`, not `{}`", seen.origin, own.origin),
    )?;
    let (before, after) = if own.size < seen.size { (&own, &seen) } else { (&seen, &own) };
    let path = match (consistency, before.size == after.size) {
        (_, true) => Vec::new(),
        (Some(proof), false) => path_of(proof, before, after)?,
        (None, false) => return Err(unproven(before, after)),
    };
    let continues = verify_consistency(before.size, &before.root, after.size, &after.root, &path);
    need(
        continues,
        "the log",
        "has two histories: it does not continue the checkpoint seen elsewhere",
    )
}

/// Returns the fault that states which consistency proof is needed.
fn unproven(before: &Checkpoint, after: &Checkpoint) -> Fault {
    // `authority.example/log/acme`, or `authority.example/log/acme/2` in a later epoch.
    let slug = before.origin.rsplit_once("/log/").and_then(|(_, rest)| rest.split('/').next());
    let slug = slug.unwrap_or("{slug}").to_owned();
    Fault::Unproven { slug, from: before.size, to: after.size }
}

/// Returns the checkpoint of a pack, or of the pack in a bundle.
fn own(file: &[u8]) -> Result<Checkpoint, Fault> {
    let document = read::strict(file)?;
    let pack = match document["kind"].as_str() {
        Some(PACK_KIND) => &document,
        Some(BUNDLE_KIND) => &document["pack"],
        _ => {
            return Err(Fault::Unreadable("only a pack and a bundle have a checkpoint".to_owned()));
        }
    };
    let proof = pack["log"]["proof"].as_str().unwrap_or_default();
    let proof = InclusionProof::parse(proof).map_err(|why| Fault::Unreadable(why.to_string()))?;
    Ok(parsed(&proof.checkpoint_note)?.checkpoint)
}

fn noted(bytes: &[u8]) -> Result<SignedCheckpoint, Fault> {
    let not_text = |_| Fault::Unreadable("the checkpoint seen elsewhere is not text".to_owned());
    let text = std::str::from_utf8(bytes).map_err(not_text)?;
    if !text.starts_with('{') {
        return parsed(text);
    }
    let message = read::strict(bytes)?;
    match (message["checkpoint"].as_str(), &message["kind"]) {
        (Some(note), _) => parsed(note),
        (None, Value::Null) => Err(not_a_checkpoint("it has no `checkpoint`")),
        (None, kind) => Err(not_a_checkpoint(&format!("`kind` is {kind}"))),
    }
}

fn not_a_checkpoint(why: &str) -> Fault {
    Fault::Unreadable(format!("the checkpoint seen elsewhere is not a checkpoint ({why})"))
}

fn parsed(note: &str) -> Result<SignedCheckpoint, Fault> {
    SignedCheckpoint::parse(note)
        .map_err(|why| Fault::Unreadable(format!("the checkpoint cannot be read: {why}")))
}

/// Returns the hashes of a proof for these sizes.
fn path_of(proof: &[u8], before: &Checkpoint, after: &Checkpoint) -> Result<Vec<Hash>, Fault> {
    let proof = read::strict(proof)?;
    let (from, to) = (proof["from"].as_u64(), proof["to"].as_u64());
    if (from, to) != (Some(before.size), Some(after.size)) {
        return Err(unproven(before, after));
    }
    let hash = |item: &Value| STANDARD.decode(item.as_str()?).ok()?.try_into().ok();
    let hashes: Option<Vec<Hash>> =
        proof["path"].as_array().and_then(|items| items.iter().map(hash).collect());
    hashes.ok_or_else(|| {
        Fault::Unreadable("the consistency proof has no `path` of hashes".to_owned())
    })
}
