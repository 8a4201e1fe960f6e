//! Verifies a pack, a bundle, a replay proof, an export or an archive's manifest offline.
//!
//! Verifying needs only the file and the keys that the verifier trusts (EVIDENCE.md). Every field
//! is covered by a check: outside the record and the facts, unknown fields are refused.

mod bundle;
mod export;
mod log;
mod manifest;
mod pack;
mod places;
mod read;
mod seen;
mod shape;
mod signed;

use authority_crypto::sha256;
use std::collections::HashMap;

use serde_json::Value;

use super::{
    Sealed,
    bundle::BUNDLE_KIND,
    log::note::LogKey,
    pack::{PACK_KIND, evidence_id},
    replay::REPLAY_KIND,
};
pub use export::{Export, ExportFault, Exported, Summary};
pub use manifest::verify_manifest;
pub use places::{LogPlaces, LogSpan};
pub use seen::verify_seen;
use shape::{BUNDLE, PACK, PROOF};

/// The start of the message if the trusted keys do not include the signature's kid.
pub const NO_KEY: &str = "no key for";

/// Ed25519 public keys (base64url) by kid.
pub type KeySet = HashMap<String, String>;

/// The keys that the verifier trusts. They must not come from the verified file.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    pub keys: Option<KeySet>,
    /// The log's key. If it is `None`, the keys in `keys` with the purpose `log` are trusted for
    /// the log.
    pub log_key: Option<LogKey>,
}

/// The keys for a checkpoint's signature.
#[derive(Clone, Copy)]
enum LogTrust<'a> {
    /// No log key is known.
    Unknown,
    Key(&'a LogKey),
    /// Any of these keys, for any origin of the log.
    AnyOf(&'a [[u8; 32]]),
}

impl Trust {
    fn log<'a>(&'a self, published: &'a [[u8; 32]]) -> LogTrust<'a> {
        match (&self.log_key, published) {
            (Some(key), _) => LogTrust::Key(key),
            (None, []) => LogTrust::Unknown,
            (None, keys) => LogTrust::AnyOf(keys),
        }
    }
}

/// The extent to which a valid file was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Valid {
    /// Every signature is by a trusted key.
    Trusted,
    /// The checkpoint's signature was not checked, because no log key is trusted.
    CheckpointUnchecked,
    /// The checkpoint's signature was checked only with the log key in the file itself.
    LogNotPinned,
    /// The signatures were checked only with the key in the file itself. The text is the key's RFC
    /// 7638 thumbprint.
    IssuerNotPinned(String),
}

impl std::fmt::Display for Valid {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Trusted => to.write_str("valid"),
            Self::CheckpointUnchecked => to.write_str("valid; checkpoint signature not checked"),
            Self::LogNotPinned => to.write_str("valid; log key not pinned"),
            Self::IssuerNotPinned(print) => {
                write!(to, "consistent; issuer not pinned: {print}")
            }
        }
    }
}

/// The reason why a file is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("invalid: {path}: {what}")]
    Invalid { path: String, what: String },
    #[error("unreadable: {0}")]
    Unreadable(String),
    /// Comparing two checkpoints requires the log's proof that one continues the other.
    #[error(
        "unproven: the checkpoints have {from} and {to} leaves: the log's proof that the one continues the \
         other is needed, GET {}", consistency_path(.slug, *.from, *.to)
    )]
    Unproven { slug: String, from: u64, to: u64 },
}

/// Returns the path of the log's proof that one checkpoint continues another.
///
/// `from` and `to` are the numbers of leaves of the checkpoints, and `slug` names the tenant.
pub fn consistency_path(slug: &str, from: u64, to: u64) -> String {
    format!("/v1/log/{slug}/consistency?from={from}&to={to}")
}

/// Returns a fault with the path of the field if `holds` is false.
fn need(holds: bool, path: &str, what: &str) -> Result<(), Fault> {
    if holds {
        return Ok(());
    }
    let path = if path.is_empty() { "the file" } else { path };
    Err(Fault::Invalid { path: path.to_owned(), what: what.to_owned() })
}

/// Verifies the bytes of a file.
///
/// # Errors
/// The first invalid field, or the bytes are not a file of a known kind.
pub fn verify(file: &[u8], trust: &Trust) -> Result<Valid, Fault> {
    let document = read::strict(file)?;
    let published = trust.keys.as_ref().map(signed::log_keys).unwrap_or_default();
    let log = trust.log(&published);
    match document["kind"].as_str() {
        Some(PACK_KIND) => {
            shape::fit(&document, &PACK, "")?;
            let none = KeySet::new();
            let keys = trust.keys.as_ref().unwrap_or(&none);
            pack::check(&document, keys, log, "")?;
            Ok(match log {
                LogTrust::Unknown => Valid::CheckpointUnchecked,
                LogTrust::Key(_) | LogTrust::AnyOf(_) => Valid::Trusted,
            })
        }
        Some(BUNDLE_KIND) => {
            shape::fit(&document, &BUNDLE, "")?;
            bundle::check(&document, trust.keys.as_ref(), log)?;
            let x = document["keys"][0]["x"].as_str().unwrap_or_default();
            Ok(match (&trust.keys, log) {
                (None, _) => Valid::IssuerNotPinned(signed::thumbprint_text(x)),
                (Some(_), LogTrust::Unknown) => Valid::LogNotPinned,
                (Some(_), LogTrust::Key(_) | LogTrust::AnyOf(_)) => Valid::Trusted,
            })
        }
        Some(REPLAY_KIND) => {
            shape::fit(&document, &PROOF, "")?;
            proof(&document, trust)?;
            Ok(Valid::Trusted)
        }
        _ => Err(Fault::Unreadable(
            "its `kind` must be that of a pack, a bundle or a replay proof".to_owned(),
        )),
    }
}

/// Returns the sealed decision in a bundle. Does not check signatures: also call [`verify`].
///
/// # Errors
/// The bytes are not a bundle.
pub fn sealed_in(file: &[u8]) -> Result<Sealed, Fault> {
    let document = read::strict(file)?;
    if document["kind"] != BUNDLE_KIND {
        return Err(Fault::Unreadable("it is not an evidence bundle".to_owned()));
    }
    shape::fit(&document, &BUNDLE, "")?;
    bundle::sealed(&document)
}

/// Returns the Ed25519 keys of a JWK set (RFC 7517), by kid. Keys of other algorithms are ignored,
/// because they do not sign evidence.
///
/// # Errors
/// The bytes are not a JWK set, or two keys have the same kid.
pub fn key_set(file: &[u8]) -> Result<KeySet, Fault> {
    let unreadable = |what: &str| Fault::Unreadable(format!("the JWK set {what}"));
    let set = read::strict(file)?;
    // A bundle also has a field `keys`. It must not be accepted as the set of trusted keys.
    if !set["kind"].is_null() {
        return Err(unreadable(
            "has a `kind`: it is an evidence file, and cannot vouch for itself",
        ));
    }
    let keys = set["keys"].as_array().ok_or_else(|| unreadable("has no `keys`"))?;
    let mut found = KeySet::new();
    for key in keys.iter().filter(|key| key["crv"] == "Ed25519") {
        let member = |name: &str| key[name].as_str().map(str::to_owned);
        let (Some(kid), Some(x), true) = (member("kid"), member("x"), key["kty"] == "OKP") else {
            return Err(unreadable("has an Ed25519 key without `kty`, `kid` or `x`"));
        };
        if found.insert(kid, x).is_some() {
            return Err(unreadable("has two keys of one kid"));
        }
    }
    Ok(found)
}

fn proof(proof: &Value, trust: &Trust) -> Result<(), Fault> {
    let text = |member: &str| proof[member].as_str().unwrap_or_default();
    let same = text("evidence_id") == evidence_id(text("decision_id"));
    need(same, "evidence_id", "is not of the decision")?;
    let differs = proof["diff"].as_array().is_some_and(|diff| !diff.is_empty());
    need((text("result") == "mismatch") == differs, "diff", "does not fit the result")?;
    let silent = text("result") == "indeterminate" && text("detail").is_empty();
    need(!silent, "detail", "must say what is indeterminate")?;
    let bound = (text("mode"), text("result")) == ("historical_state_snapshot", "match");
    let same = proof["recomputed_decision_id"] == proof["decision_id"];
    need(!bound || same, "recomputed_decision_id", "is not the decision's")?;
    let none = KeySet::new();
    let keys = trust.keys.as_ref().unwrap_or(&none);
    let signed = canonical_without(proof, "signature")?;
    signed::check(&proof["signature"], "replay", &signed, keys, "signature")
}

/// Returns the value in RFC 8785 form.
fn canonical(value: &Value) -> Result<Vec<u8>, Fault> {
    let written = serde_json_canonicalizer::to_vec(value);
    written.map_err(|why| Fault::Unreadable(why.to_string()))
}

fn canonical_without(value: &Value, member: &str) -> Result<Vec<u8>, Fault> {
    let mut rest = value.clone();
    if let Value::Object(members) = &mut rest {
        members.remove(member);
    }
    canonical(&rest)
}

/// Returns the text form of the bytes' SHA-256.
fn digest(bytes: &[u8]) -> String {
    super::digest_text(&sha256(bytes))
}
