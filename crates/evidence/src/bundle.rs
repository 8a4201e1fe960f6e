//! The bundle `svc.evidence.bundle.v1`: a pack and the data to verify and replay its decision.

use authority_crypto::sha256;
use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    Error, Sealed, digest_text,
    sealed::{policies, schemas},
};

/// `kind` of a bundle.
pub const BUNDLE_KIND: &str = "svc.evidence.bundle.v1";

/// Returns the bundle's text in RFC 8785 form.
///
/// `key` is the JWK of the key that signed the record. `log_key` is the C2SP verifier key of the
/// checkpoint in the pack.
///
/// # Errors
/// A text is missing, or a part is not JSON, which is a bug.
pub fn bundle(pack: &str, sealed: &Sealed, key: &Value, log_key: &str) -> Result<String, Error> {
    if named(sealed.gathered()?)?.iter().any(|sha256| !sealed.texts.contains_key(sha256)) {
        return Err(Error::Unreadable("the text of a policy or of an input schema"));
    }
    let mut bundle = json!({
        "blobs": blobs(sealed)?,
        "context": salted(&sealed.salts.context, &sealed.context)?,
        "facts": salted(&sealed.salts.facts, &sealed.facts)?,
        "keys": [key],
        "kind": BUNDLE_KIND,
        "log_key": log_key,
        "pack": serde_json::from_str::<Value>(pack)?,
    });
    let digest = sha256(&serde_json_canonicalizer::to_vec(&bundle)?);
    bundle["bundle_digest"] = json!(digest_text(&digest));
    Ok(serde_json_canonicalizer::to_string(&bundle)?)
}

/// Returns the remaining parts of a partly erased decision, in RFC 8785 form.
///
/// Such a decision has no bundle. The parts are its context, or its facts with their blobs.
///
/// # Errors
/// A part is not JSON, which is a bug.
pub fn remains(sealed: &Sealed) -> Result<String, Error> {
    let mut remains = json!({});
    if !sealed.context.is_empty() {
        remains["context"] = salted(&sealed.salts.context, &sealed.context)?;
    }
    if !sealed.facts.is_empty() {
        remains["facts"] = salted(&sealed.salts.facts, &sealed.facts)?;
        if sealed.gathered.is_some() {
            remains["blobs"] = Value::Array(blobs(sealed)?);
        }
    }
    Ok(serde_json_canonicalizer::to_string(&remains)?)
}

fn salted(salt: &[u8; 16], content: &[u8]) -> Result<Value, Error> {
    Ok(json!({"salt": STANDARD.encode(salt), "value": serde_json::from_slice::<Value>(content)?}))
}

/// Returns the digests of the policy and schema texts that the facts refer to.
fn named(facts: &[u8]) -> Result<BTreeSet<String>, Error> {
    let of_policies = policies(facts)?.into_iter().map(|one| one.sha256);
    Ok(of_policies.chain(schemas(facts)?).collect())
}

/// Returns the facts, and the texts that they refer to and that still exist, in order of digest.
fn blobs(sealed: &Sealed) -> Result<Vec<Value>, Error> {
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    let facts = sealed.gathered()?;
    let gathered = digest_text(&sha256(facts));
    let mut blobs = vec![(gathered.clone(), json!({"json": read(facts)?, "sha256": gathered}))];
    if let Some(reality) = &sealed.reality {
        let name = digest_text(&sha256(reality));
        blobs.push((name.clone(), json!({"json": read(reality)?, "sha256": name})));
    }
    for sha256 in named(facts)? {
        // Some texts may have been erased.
        let Some(text) = sealed.texts.get(&sha256) else { continue };
        let name = format!("sha256:{sha256}");
        blobs.push((name.clone(), json!({"sha256": name, "text": text})));
    }
    blobs.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(blobs.into_iter().map(|(_, blob)| blob).collect())
}
