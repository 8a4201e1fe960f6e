//! The search fields of a decision, and its place.

use authority_crypto::sha256;
use authority_ids::{DecisionId, DecisionRef, PrincipalRef, TenantRef};

use super::super::{Error, entry::Entry, frames::LinePlace};

/// The fields that a decision can be searched by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub decision_id: DecisionRef,
    /// In microseconds since 1970.
    pub evaluated_at: i64,
    pub subject: PrincipalRef,
    pub action: String,
    pub decision: String,
    pub reason_code: String,
    /// The index of the decision's leaf in the tenant's log.
    pub log_index: i64,
}

impl About {
    /// Reads the search fields of an entry.
    ///
    /// # Errors
    /// The line is not the entry of a decision of this tenant, or its record belongs to another
    /// decision. The id of a decision contains the digest of its record.
    pub fn of(line: &[u8], tenant_id: &TenantRef) -> Result<Self, Error> {
        let entry = Entry::read(line)?;
        let summary = entry.summary()?;
        if summary.tenant_id != *tenant_id {
            return Err(Error::Unreadable("it belongs to another tenant"));
        }
        let millis = u64::try_from(summary.evaluated_at.timestamp_millis()).unwrap_or_default();
        let id = DecisionId::new(millis, &sha256(summary.record.as_bytes()));
        if entry.decision_id != id {
            return Err(Error::Unreadable("its record belongs to another decision"));
        }
        Ok(Self {
            decision_id: entry.decision_id,
            evaluated_at: summary.evaluated_at.timestamp_micros(),
            subject: summary.subject,
            action: summary.action,
            decision: summary.decision,
            reason_code: summary.reason_code,
            log_index: summary.log_index,
        })
    }
}

/// A decision and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    pub about: About,
    pub place: LinePlace,
}
