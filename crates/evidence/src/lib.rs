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
mod digest;
mod error;
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
pub use digest::{digest_text, is_hex, salted_digest};
pub use error::Error;
pub use facts::{Blob, PreparedFacts};
pub use record::{DecidedRequest, RECORD_KIND, Recorded, Salts, Written, record, write};
pub use report::{OutcomeReport, REPORT_KIND, sign_report};
pub use signed::SignedText;
