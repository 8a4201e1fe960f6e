//! Checks a bundle: the pack, the data that the record contains as digests, and the decision.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    canonical::{canonical, canonical_without, digest},
    fault::{Fault, need, need_key},
    pack,
    shape::{DIGEST, GATHERED, Shape, fit},
    trust::{KeySet, LogTrust},
};
use crate::{Salts, Sealed, log::note::LogKey, replay::differences};

pub(super) fn check(
    bundle: &Value,
    pinned: Option<&KeySet>,
    log: LogTrust<'_>,
) -> Result<(), Fault> {
    let pack = &bundle["pack"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = bundle["keys"].as_array().is_some_and(|keys| keys.len() == 1);
    need(one, "keys", "must hold one key")?;
    let (kid, x) = (text(&bundle["keys"][0]["kid"]), text(&bundle["keys"][0]["x"]));
    need(pack["signature"]["kid"] == kid.as_str(), "keys[0].kid", "is not the signature's")?;
    if let Some(pinned) = pinned {
        let known = pinned.get(&kid);
        need_key(known.is_some(), "pack.signature.kid", &kid)?;
        need(known == Some(&x), "keys[0].x", "is not the pinned key")?;
    }
    let misfit = |_| Fault::invalid("log_key", "its id does not fit its key");
    let log_key = LogKey::parse(&text(&bundle["log_key"])).map_err(misfit)?;
    match log {
        LogTrust::Unknown => {}
        LogTrust::Key(key) => need(*key == log_key, "log_key", "is not the pinned key")?,
        LogTrust::AnyOf(keys) => {
            let known = keys.contains(&log_key.public_key);
            need(known, "log_key", "is not a log key of the JWK set")?;
        }
    }
    pack::check(pack, &KeySet::from([(kid, x)]), LogTrust::Key(&log_key), "pack.")?;
    let record = &pack["record"];
    let parts =
        [("context", &record["request"]["context_digest"]), ("facts", &record["facts_digest"])];
    for (part, named) in parts {
        let salt = STANDARD.decode(text(&bundle[part]["salt"])).unwrap_or_default();
        let salted = [salt, canonical(&bundle[part]["value"])?].concat();
        need(*named == digest(&salted).as_str(), part, "does not have the record's digest")?;
    }
    let sealed = sealed(bundle)?;
    let whole = digest(&canonical_without(bundle, "bundle_digest")?);
    need(bundle["bundle_digest"] == whole.as_str(), "bundle_digest", "is not the bundle's")?;
    decide(&sealed)
}

/// The contents of a bundle's blobs.
struct Bodies {
    gathered: Vec<u8>,
    reality: Option<Vec<u8>>,
    /// The texts of policies and input schemas by their SHA-256.
    texts: HashMap<String, String>,
}

fn blobs(bundle: &Value) -> Result<Bodies, Fault> {
    let blobs = bundle["blobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut before = "";
    for (place, blob) in blobs.iter().enumerate() {
        let at = format!("blobs[{place}]");
        let is_json = blob.get("json").is_some();
        let shape = if is_json { &JSON } else { &TEXT };
        fit(blob, shape, &at)?;
        let sha256 = blob["sha256"].as_str().unwrap_or_default();
        need(before < sha256, &format!("{at}.sha256"), "is not in order")?;
        before = sha256;
        let body = match blob["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => canonical(&blob["json"])?,
        };
        need(digest(&body) == sha256, &format!("{at}.sha256"), "is not the body's")?;
    }
    let find = |name: &str| blobs.iter().position(|blob| blob["sha256"] == name);
    let wanted = bundle["facts"]["value"]["gathered"].as_str().unwrap_or_default();
    let place = find(wanted).filter(|place| blobs[*place]["json"].is_object());
    need(place.is_some(), "facts.value.gathered", "no json blob has it")?;
    let place = place.unwrap_or_default();
    let mut named = HashSet::from([place]);
    let reality = match bundle["facts"]["value"]["reality"].as_str() {
        None => None,
        Some(name) => {
            let place = find(name).filter(|place| blobs[*place]["json"].is_object());
            need(place.is_some(), "facts.value.reality", "no json blob has it")?;
            let place = place.unwrap_or_default();
            named.insert(place);
            Some(canonical(&blobs[place]["json"])?)
        }
    };
    let (facts, at) = (&blobs[place]["json"], format!("blobs[{place}].json"));
    fit(facts, &GATHERED, &at)?;
    let mut texts = HashMap::new();
    let naming = ["policies", "observing", "schemas"].into_iter().flat_map(|kind| {
        let all = facts[kind].as_array().into_iter().flatten().enumerate();
        all.map(move |(index, one)| (kind, index, one))
    });
    for (kind, index, one) in naming {
        let sha256 = one["sha256"].as_str().unwrap_or_default();
        let found = find(&format!("sha256:{sha256}"));
        let text = found.and_then(|place| blobs[place]["text"].as_str());
        let path = format!("{at}.{kind}[{index}].sha256");
        need(text.is_some(), &path, "no text blob has it")?;
        named.extend(found);
        texts.insert(sha256.to_owned(), text.unwrap_or_default().to_owned());
    }
    let extra = (0..blobs.len()).find(|place| !named.contains(place));
    need(extra.is_none(), &format!("blobs[{}]", extra.unwrap_or_default()), "is named by nothing")?;
    Ok(Bodies { gathered: canonical(facts)?, reality, texts })
}

const JSON: Shape = Shape::Exactly(&[("sha256", DIGEST), ("json", Shape::Object)]);
const TEXT: Shape = Shape::Exactly(&[("sha256", DIGEST), ("text", Shape::Text)]);

/// Checks the blobs, and returns the sealed decision with all of its input.
pub(super) fn sealed(bundle: &Value) -> Result<Sealed, Fault> {
    let Bodies { gathered, reality, texts } = blobs(bundle)?;
    let salt = |part: &str| -> [u8; 16] {
        let text = bundle[part]["salt"].as_str().unwrap_or_default();
        STANDARD.decode(text).ok().and_then(|salt| salt.try_into().ok()).unwrap_or_default()
    };
    Ok(Sealed {
        record: canonical(&bundle["pack"]["record"])?,
        context: canonical(&bundle["context"]["value"])?,
        facts: canonical(&bundle["facts"]["value"])?,
        salts: Salts { context: salt("context"), facts: salt("facts") },
        gathered: Some(Arc::new(gathered)),
        reality: reality.map(Arc::new),
        texts: Arc::new(texts),
    })
}

/// Checks that the decision follows from its request and facts. The other checks don't cover this.
fn decide(sealed: &Sealed) -> Result<(), Fault> {
    let broken = |what: String| Fault::invalid("pack.record", what);
    let again = sealed.decide_again().map_err(|why| broken(why.to_string()))?;
    if again.written.record == sealed.record {
        return Ok(());
    }
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let differing = differences(&read(&sealed.record), &read(&again.written.record));
    let member = differing.first().map(|one| format!(".{}", one.member)).unwrap_or_default();
    Err(Fault::invalid(format!("pack.record{member}"), "deciding again gives another"))
}
