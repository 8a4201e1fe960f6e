//! The proof of a decision: its canonical record, the digests in it, its id and its signature.
//!
//! Everything hashed or signed is canonical JSON (RFC 8785). The record is signed. It contains
//! context and facts only as salted digests, so that either can be withheld or erased and the
//! record, its id and its signature remain valid.
//!
//! The crate is pure: to verify or replay, one needs a file and the keys to trust, and neither a
//! database nor the service.
//!
//! ```
//! use authority_evidence::verify::{Trust, Valid, sealed_in, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = std::fs::read("../../tests/golden/permission_granted-1.json")?;
//! // Without trusted keys, it is only consistent: the issuer is unknown.
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

use authority_crypto::sha256;
use authority_decision::facts::RebuildError;

/// Errors of making or reading records.
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

/// Whether it is this many lower-case hexadecimal digits.
pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// `sha256:` and hex, the text form of all digests.
pub fn digest_text(digest: &[u8; 32]) -> String {
    format!("sha256:{}", hex::encode(digest))
}

/// A salted digest, which reveals nothing about its content without the salt: SHA-256(salt ‖
/// content).
pub fn salted_digest(salt: &[u8; 16], content: &[u8]) -> [u8; 32] {
    sha256(&[salt, content].concat())
}
