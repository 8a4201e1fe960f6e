//! The names of an archive's objects.
//!
//! A name contains the digest of the object. An object is therefore never overwritten with other
//! content, even if a node that was presumed dead continues to write, or an archive is rewritten.

use std::fmt::Display;

use authority_evidence::archive::Content;
use authority_ids::TenantId;

/// The number of hex digits of the digest.
const DIGITS: usize = 12;
const MANIFEST: &str = "manifest-";

/// The folder of a tenant's month, from the top of the archive: `acme/2026-07`.
pub fn folder(tenant_id: &TenantId, month: &impl Display) -> String {
    format!("{}/{month}", tenant_id.slug())
}

/// Returns the name of an object in a folder, from the top of the archive.
///
/// `folder` is empty if the object is at the top.
pub fn path(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The name of an object with this SHA-256: `decisions-00001-1f3a9c0e5b7d.jsonl.zst`.
pub fn object(content: Content, part: u32, sha256: &[u8; 32]) -> String {
    let extension = match content {
        Content::Index => "parquet",
        Content::Decisions | Content::Versions | Content::Changes => "jsonl.zst",
    };
    format!("{}-{part:05}-{}.{extension}", content.word(), short(sha256))
}

/// The name of a manifest with this SHA-256.
pub fn manifest(sha256: &[u8; 32]) -> String {
    format!("{MANIFEST}{}.json", short(sha256))
}

/// Whether an object of this name is a manifest.
pub fn is_manifest(name: &str) -> bool {
    name.strip_prefix(MANIFEST).is_some_and(|rest| rest.strip_suffix(".json").is_some())
}

/// Whether this is the name of an archive's object. Files with other names are never deleted.
pub fn is_object(name: &str) -> bool {
    let words = ["decisions-", "index-", "versions-", "changes-"];
    let is_digest =
        |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((start, extension)) = name.split_once('.') else { return false };
    if let Some(digest) = start.strip_prefix(MANIFEST) {
        return extension == "json" && is_digest(digest);
    }
    let rest = words.iter().find_map(|word| start.strip_prefix(word));
    let parts = rest.and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(part, digest)| {
        part.bytes().all(|byte| byte.is_ascii_digit())
            && is_digest(digest)
            && ["parquet", "jsonl.zst"].contains(&extension)
    })
}

fn short(sha256: &[u8; 32]) -> String {
    let mut text = hex::encode(sha256);
    text.truncate(DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_content_part_and_digest() {
        let digest = [0xab; 32];
        assert_eq!(
            object(Content::Decisions, 7, &digest),
            "decisions-00007-abababababab.jsonl.zst"
        );
        assert_eq!(object(Content::Index, 7, &digest), "index-00007-abababababab.parquet");
        assert_eq!(manifest(&digest), "manifest-abababababab.json");
        assert_eq!(path("acme/2026-07", "one"), "acme/2026-07/one");
        assert_eq!(path("", "one"), "one");
        for content in [Content::Decisions, Content::Index, Content::Versions, Content::Changes] {
            assert!(is_object(&object(content, 1, &digest)));
        }
        assert!(is_object(&manifest(&digest)));
        for other in
            ["important.txt", "sub/index-00001-abababababab.parquet", "manifest-x.json", ""]
        {
            assert!(!is_object(other), "{other}");
        }
        assert!(is_manifest(&manifest(&digest)) && !is_manifest("index-00007-ab.parquet"));
    }
}
