//! Verifies a pack, a bundle, a replay proof, an export or an archive's manifest offline.
//!
//! Verifying needs only the file and the keys that the verifier trusts (EVIDENCE.md). Every field
//! is covered by a check: outside the record and the facts, unknown fields are refused.

mod bundle;
mod canonical;
mod decided;
mod export;
mod fault;
mod file;
mod log;
mod manifest;
mod pack;
mod places;
mod read;
mod seen;
mod shape;
mod signed;
mod trust;

pub use decided::verify_decided;
pub use export::{Export, ExportFault, Exported, Summary};
pub use fault::{Cause, Fault, consistency_path};
pub use file::{key_set, sealed_in, verify};
pub use manifest::verify_manifest;
pub use places::{LogPlaces, LogSpan};
pub use seen::verify_seen;
pub use trust::{KeySet, Trust, Valid};
