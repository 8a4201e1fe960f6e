//! Verifies a file of any kind: a pack, a bundle or a replay proof.

use serde_json::Value;

use super::{
    bundle,
    canonical::canonical_without,
    fault::{Fault, need},
    pack, read,
    shape::{self, BUNDLE, PACK, PROOF},
    signed,
    trust::{KeySet, LogTrust, Trust, Valid},
};
use crate::{
    Sealed,
    bundle::BUNDLE_KIND,
    pack::{PACK_KIND, evidence_id},
    replay::REPLAY_KIND,
};

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
