//! Ids of decisions, of their evidence, and of records without a tenant in their id.

use std::fmt::Write;

use crate::{ApiKeyId, ApprovalId, DecisionId, EvidenceId, RecordId, Unique};

const HEX: &[u8; 16] = b"0123456789abcdef";
/// The number of hex digits in a decision's hash: 12 for the decision's time, the others for the
/// digest of its record.
const HASH: usize = 64;
/// The number of bytes of the digest that the hash contains.
const DIGEST: usize = (HASH - 12) / 2;

impl DecisionId {
    pub const PREFIX: &'static str = "svc:decision:";

    /// Returns the id of a decision that was made at `millis`, in milliseconds since 1970.
    ///
    /// `record` is the SHA-256 of the decision's record. The hash starts with 12 digits for the
    /// time, which are enough until the year 10889: ids therefore sort by time. The first digits of
    /// the SHA-256 fill the hash up to 64 digits.
    pub fn new(millis: u64, record: &[u8; 32]) -> Self {
        let mut text = Self::first(millis);
        for byte in &record[..DIGEST] {
            text.extend([byte >> 4, byte & 0xf].map(|digit| char::from(HEX[usize::from(digit)])));
        }
        Self::from_valid(text)
    }

    /// Returns the lower bound of the ids of decisions at or after `millis`, in milliseconds since
    /// 1970. This bound is only the beginning of an id.
    pub fn first(millis: u64) -> String {
        let mut text = String::with_capacity(Self::PREFIX.len() + HASH);
        text.push_str(Self::PREFIX);
        // Writing to a `String` does not fail.
        let _ = write!(text, "{millis:012x}");
        text
    }

    /// Returns the time in an id, or in a bound of [`Self::first`], in milliseconds since 1970.
    pub fn millis(text: &str) -> Option<i64> {
        i64::from_str_radix(text.strip_prefix(Self::PREFIX)?.get(..12)?, 16).ok()
    }

    /// Returns the 64 hex digits of the hash. The id of the decision's evidence has the same hash.
    pub fn hash(&self) -> &str {
        self.part(2)
    }
}

impl EvidenceId {
    pub const PREFIX: &'static str = "svc:evidence:";

    pub fn of(decision: &DecisionId) -> Self {
        Self::from_valid(format!("{}{}", Self::PREFIX, decision.hash()))
    }

    pub fn decision(&self) -> DecisionId {
        DecisionId::from_valid(format!("{}{}", DecisionId::PREFIX, self.part(2)))
    }
}

impl ApprovalId {
    /// The approval that a simulation assumes. It is not the id of any record.
    pub const ASSUMED: &'static str = "svc:approval:supposed";

    pub fn new(unique: Unique) -> Self {
        Self::from_valid(format!("svc:approval:{unique}"))
    }
}

impl ApiKeyId {
    const PREFIX: &'static str = "svc:api_key:";

    pub fn new(public_id: Unique) -> Self {
        Self::from_valid(format!("{}{public_id}", Self::PREFIX))
    }

    /// Returns the public part of the key's text.
    pub fn public_id(&self) -> &str {
        self.part(2)
    }
}

impl RecordId {
    pub const EVENT: &'static str = "svc:event:";
    pub const REPLAY: &'static str = "svc:replay:";

    /// Returns a new id. `kind` is the record's kind in lower-case letters and `_`.
    pub fn new(kind: &'static str, unique: Unique) -> Self {
        Self::from_valid(format!("svc:{kind}:{unique}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_and_a_bound_have_their_time() {
        let millis = 1_767_609_000_123;
        assert_eq!(DecisionId::millis(&DecisionId::first(millis)), Some(1_767_609_000_123));
        let id = DecisionId::new(millis, &[7; 32]);
        assert_eq!(DecisionId::millis(id.as_str()), Some(1_767_609_000_123));
        assert_eq!(DecisionId::millis("svc:decision:0"), None);
        assert_eq!(DecisionId::millis("svc:approval:0123456789ab"), None);
    }
}
