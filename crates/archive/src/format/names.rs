//! What an archive's objects are called.
//!
//! A name has the digest of what it names. So nothing is ever overwritten by something else, neither by a node that
//! went on after it was thought dead nor where an archive is written anew.

use std::fmt::Display;

use authority_evidence::archive::Content;
use authority_ids::TenantId;

/// Hex digits of the digest.
const DIGITS: usize = 12;
const MANIFEST: &str = "manifest-";

/// The folder of a tenant's month, from the top of the archive: `acme/2026-07`.
pub fn folder(tenant_id: &TenantId, month: &impl Display) -> String {
    format!("{}/{month}", tenant_id.slug())
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
        assert!(is_manifest(&manifest(&digest)) && !is_manifest("index-00007-ab.parquet"));
    }
}
