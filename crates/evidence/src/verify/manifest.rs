//! Checks a manifest: its signature, and that its counts match its objects.

use serde_json::Value;

use super::{
    canonical::canonical_without,
    fault::{Fault, need, need_key},
    read,
    shape::{MANIFEST, fit},
    signed,
    trust::{KeySet, Trust, Valid},
};
use crate::archive::{ARCHIVE_KIND, Content, Manifest};

/// Verifies a manifest. Returns it, and whether a trusted key signed it.
///
/// The objects that it lists are separate files and are not checked.
///
/// # Errors
/// The first invalid field, or that the bytes are not a manifest.
pub fn verify_manifest(file: &[u8], trust: &Trust) -> Result<(Manifest, Valid), Fault> {
    let document = read::strict(file)?;
    if document["kind"] != ARCHIVE_KIND {
        return Err(Fault::Unreadable("it is not the manifest of an archive".to_owned()));
    }
    let valid = check(&document, trust)?;
    let manifest = serde_json::from_value(document);
    let manifest: Manifest = manifest.map_err(|why| Fault::Unreadable(why.to_string()))?;
    whole(&manifest)?;
    Ok((manifest, valid))
}

fn check(document: &Value, trust: &Trust) -> Result<Valid, Fault> {
    fit(document, &MANIFEST, "")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kid, x) = (text(&document["key"]["kid"]), text(&document["key"]["x"]));
    if let Some(pinned) = &trust.keys {
        let known = pinned.get(&kid);
        need_key(known.is_some(), "signature.kid", &kid)?;
        need(known == Some(&x), "key.x", "is not the pinned key")?;
    }
    let (valid, known) = match &trust.keys {
        Some(_) => (Valid::Trusted, KeySet::from([(kid, x)])),
        None => (Valid::IssuerNotPinned(signed::thumbprint_text(&x)), KeySet::from([(kid, x)])),
    };
    let bytes = canonical_without(document, "signature")?;
    signed::check(&document["signature"], "evidence", &bytes, &known, "signature")?;
    Ok(valid)
}

fn whole(manifest: &Manifest) -> Result<(), Fault> {
    let count = |content| manifest.objects_of(content).map(|object| object.entries).sum::<u64>();
    let same = [
        ("decisions", Content::Decisions, manifest.decisions),
        ("decisions", Content::Index, manifest.decisions),
        ("versions", Content::Versions, manifest.versions),
        ("changes", Content::Changes, manifest.changes),
    ];
    for (member, content, stated) in same {
        let what = format!("does not match the objects of `{}`", content.word());
        need(count(content) == stated, member, &what)?;
    }
    for (place, object) in manifest.objects.iter().enumerate() {
        let plain = !object.name.is_empty() && !object.name.contains(['/', '\\']);
        need(plain, &format!("objects[{place}].name"), "is not the name of an object beside it")?;
    }
    Ok(())
}
