//! Decisions, their evidence, and the records whose ids do not contain their tenant.

use std::fmt::Write;

use crate::{ApiKeyId, ApprovalId, DecisionId, EvidenceId, RecordId, Unique};

const HEX: &[u8; 16] = b"0123456789abcdef";
/// Hex digits of a decision's hash: 12 of its time, and those of its digest.
const HASH: usize = 64;
/// Bytes of the digest in a decision's hash.
const DIGEST: usize = (HASH - 12) / 2;

impl DecisionId {
    pub const PREFIX: &'static str = "svc:decision:";

    /// The id of a decision at `millis` since 1970 (before the year 10889) whose record has this SHA-256.
    /// The time is first, so that ids sort by time; as many digits of the digest follow as make 64.
    pub fn new(millis: u64, record: &[u8; 32]) -> Self {
        let mut text = Self::first(millis);
        for byte in &record[..DIGEST] {
            text.extend([byte >> 4, byte & 0xf].map(|digit| char::from(HEX[usize::from(digit)])));
        }
        Self::from_valid(text)
    }

    /// Where the ids of decisions from `millis` since 1970 on begin: the first of a range of ids.
    pub fn first(millis: u64) -> String {
        let mut text = String::with_capacity(Self::PREFIX.len() + HASH);
        text.push_str(Self::PREFIX);
        // Writing to a text does not fail.
        let _ = write!(text, "{millis:012x}");
        text
    }

    /// 64 hex digits, which the decision's evidence has as well.
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
    /// The approval that a simulation assumes. No record has this id.
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

    /// The part of the key's text that is not secret.
    pub fn public_id(&self) -> &str {
        self.part(2)
    }
}

impl RecordId {
    pub const REPLAY: &'static str = "svc:replay:";

    /// `kind` is the record's kind in lower-case letters and `_`.
    pub fn new(kind: &'static str, unique: Unique) -> Self {
        Self::from_valid(format!("svc:{kind}:{unique}"))
    }
}
