//! Digests: their text form, and digests with a salt.

use authority_crypto::{hex, sha256_of};

/// Whether the text has exactly this many lower-case hexadecimal digits.
pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the text form of a digest: `sha256:` and hex.
pub fn digest_text(digest: &[u8; 32]) -> String {
    let mut text = String::with_capacity(7 + 64);
    text.push_str("sha256:");
    text.push_str(&hex(digest));
    text
}

/// Returns the salted digest SHA-256(salt ‖ content).
///
/// Without the salt, the digest does not reveal the content.
pub fn salted_digest(salt: &[u8; 16], content: &[u8]) -> [u8; 32] {
    sha256_of(&[salt, content])
}
