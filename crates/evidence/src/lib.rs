//! The proof of a decision: its canonical record, the digests in it, its id and its signature.
//!
//! All hashed or signed data is canonical JSON (RFC 8785). The record is signed. It contains the
//! context and the facts only as salted digests. If the context or the facts are withheld or
//! erased, the record, its id and its signature remain valid.
//!
//! The crate does no I/O. Verifying and replaying need only a file and trusted keys, without a
//! database or service.
//!
//! ```
//! use authority_evidence::verify::{Trust, Valid, sealed_in, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = std::fs::read("../../tests/golden/permission_granted-1.json")?;
//! // Without trusted keys, the bundle is only consistent: its issuer is unknown.
//! assert!(matches!(verify(&bundle, &Trust::default())?, Valid::IssuerNotPinned(_)));
//! let sealed = sealed_in(&bundle)?;
//! assert_eq!(sealed.decide_again()?.written.record, sealed.record);
//! # Ok(())
//! # }
//! ```

mod act;
mod again;
pub mod archive;
pub mod bundle;
mod canonical;
mod facts;
pub mod log;
pub mod pack;
mod record;
pub mod replay;
mod report;
pub mod sealed;
mod signed;
pub mod verify;

pub use act::{ACT_KIND, Act, SignedAct, sign_act};
pub use again::{Again, Sealed};
pub use facts::{Blob, PreparedFacts};
pub use record::{Asked, Recorded, Salts, Written, record, write};
pub use report::{OutcomeReport, REPORT_KIND, sign_report};
pub use signed::SignedText;

use authority_crypto::{hex, sha256_of};
use authority_decision::facts::RebuildError;

/// Errors of writing or reading records.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Crypto(#[from] authority_crypto::Error),
    #[error("a part of the record does not serialise, or cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
    #[error(transparent)]
    Facts(#[from] RebuildError),
    #[error("it was decided under `{0}`, which this program does not know")]
    Semantics(String),
}

/// `kind` of a decision record.
pub const RECORD_KIND: &str = "svc.decision.record.v1";

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
