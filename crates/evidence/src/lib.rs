//! What proves a decision: its canonical record, the digests in it, its id and its signature.
//!
//! Everything hashed or signed is canonical JSON (RFC 8785). The record is what is signed; context
//! and facts stand in it only as salted digests, so that either can be withheld or erased and the
//! record, its id and its signature still hold.
//!
//! All of it is pure: who verifies or replays needs a file and the keys to trust, and neither a
//! database nor the service.
//!
//! ```
//! use authority_evidence::verify::{Trust, Valid, sealed_in, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = std::fs::read("../../tests/golden/permission_granted-1.json")?;
//! // Without keys to trust, it is found to be consistent, and by whom it is, is open.
//! assert!(matches!(verify(&bundle, &Trust::default())?, Valid::IssuerNotPinned(_)));
//! let sealed = sealed_in(&bundle)?;
//! assert_eq!(sealed.decide_again()?.written.record, sealed.record);
//! # Ok(())
//! # }
//! ```

mod act;
mod again;
pub mod bundle;
mod facts;
pub mod log;
pub mod pack;
mod record;
pub mod replay;
mod report;
pub mod sealed;
mod signed;
pub mod verify;

pub use act::{ACT_KIND, Act, sign_act};
pub use again::{Again, Sealed};
pub use facts::PreparedFacts;
pub use record::{Asked, Recorded, Salts, Written, record, write};
pub use report::{OutcomeReport, REPORT_KIND, sign_report};
pub use signed::SignedText;

use authority_crypto::sha256;
use authority_decision::facts::RebuildError;

/// Why there is no record.
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

/// Whether it is so many hexadecimal digits, in lower case.
pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// `sha256:` and hex, as digests are written everywhere.
pub fn digest_text(digest: &[u8; 32]) -> String {
    format!("sha256:{}", hex::encode(digest))
}

/// A digest that tells nothing of what it is of to who lacks the salt: SHA-256(salt ‖ content).
pub fn salted_digest(salt: &[u8; 16], content: &[u8]) -> [u8; 32] {
    sha256(&[salt, content].concat())
}
