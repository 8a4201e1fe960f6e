//! A stored pack in its parts.

use authority_evidence::{Error, pack};
use authority_ids::DecisionRef;

/// A pack in its parts.
#[derive(Clone, Debug)]
pub struct StoredPack {
    pub decision_id: DecisionRef,
    /// The origin of the log.
    pub origin: String,
    /// The index in the log, from 0.
    pub index: i64,
    /// The pack without its origin, index and proof, as RFC 8785 JSON.
    pub leaf: Vec<u8>,
    /// The C2SP tlog-proof at the time of sealing.
    pub proof: String,
}

impl StoredPack {
    /// Returns the pack as RFC 8785 JSON.
    ///
    /// # Errors
    /// The leaf is not valid: it was altered.
    pub fn text(self) -> Result<String, Error> {
        pack::stored(&self.leaf, self.origin, self.index, self.proof)
    }
}
