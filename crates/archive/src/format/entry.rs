//! A line of a part: one decision with all of its stored documents.

use authority_ids::{ApprovalRef, DecisionRef, PrincipalRef, TenantRef};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Error;

/// `kind` of an entry.
pub const ENTRY_KIND: &str = "svc.archive.entry.v1";

/// One decision. Its documents are exactly the bytes that the service returned.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry<'a> {
    /// The approval request, if the decision was held.
    pub approval_id: Option<ApprovalRef>,
    /// `svc.evidence.bundle.v1`; absent if a part of the bundle was erased.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<&'a RawValue>,
    pub decision_id: DecisionRef,
    pub kind: String,
    /// `svc.evidence.pack.v1`, in entries without a bundle.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<&'a RawValue>,
    /// The remaining context and facts, in entries without a bundle.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub remains: Option<&'a RawValue>,
    /// `svc.replay.proof.v1`, oldest first.
    #[serde(borrow)]
    pub replays: Vec<&'a RawValue>,
    pub report: Option<Report>,
}

/// The reported outcome of the action, with the signed text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
    pub detail: Option<String>,
    pub kid: String,
    pub outcome: String,
    /// In RFC 8785 form; empty if it was erased.
    pub record: String,
    pub reported_by: String,
    /// In hex.
    pub signature: String,
}

/// The part of a bundle that identifies an entry.
#[derive(Deserialize)]
struct Bundled<'a> {
    #[serde(borrow)]
    pack: &'a RawValue,
}

#[derive(Deserialize)]
struct Pack<'a> {
    #[serde(borrow)]
    log: Log<'a>,
    #[serde(borrow)]
    record: &'a RawValue,
    #[serde(borrow)]
    signature: Signature<'a>,
    sealed_at: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Log<'a> {
    index: i64,
    origin: &'a str,
}

#[derive(Deserialize)]
struct Signature<'a> {
    kid: &'a str,
    value: &'a str,
}

#[derive(Deserialize)]
struct Record {
    evaluated_at: DateTime<Utc>,
    request: Request,
    tenant_id: TenantRef,
    verdict: Verdict,
}

#[derive(Deserialize)]
struct Request {
    action: String,
    subject: PrincipalRef,
}

#[derive(Deserialize)]
struct Verdict {
    decision: String,
    reason_code: String,
}

impl<'a> Entry<'a> {
    /// Reads an entry from a line.
    ///
    /// # Errors
    /// The line is not an entry.
    pub fn read(line: &'a [u8]) -> Result<Self, Error> {
        let entry: Self = serde_json::from_slice(line)?;
        if entry.kind != ENTRY_KIND {
            return Err(Error::Unreadable("its `kind` does not match archive entries"));
        }
        if entry.bundle.is_some() == entry.pack.is_some() {
            return Err(Error::Unreadable("it must have a bundle or a pack"));
        }
        Ok(entry)
    }

    /// Writes the entry as a line, without a line break.
    ///
    /// # Errors
    /// This does not happen: its fields are strings.
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Returns the exact text of the pack, from the entry or from its bundle.
    ///
    /// # Errors
    /// The bundle has no pack.
    pub fn pack_text(&self) -> Result<&'a str, Error> {
        match (self.pack, self.bundle) {
            (Some(pack), _) => Ok(pack.get()),
            (None, Some(bundle)) => {
                let bundled: Bundled<'a> = serde_json::from_str(bundle.get())?;
                Ok(bundled.pack.get())
            }
            (None, None) => Err(Error::Unreadable("it has no pack")),
        }
    }

    /// Returns the fields that describe the decision.
    ///
    /// # Errors
    /// The pack was not made by this service.
    pub fn summary(&self) -> Result<Summary<'a>, Error> {
        let pack: Pack<'a> = serde_json::from_str(self.pack_text()?)?;
        let record: Record = serde_json::from_str(pack.record.get())?;
        Ok(Summary {
            tenant_id: record.tenant_id,
            subject: record.request.subject,
            action: record.request.action,
            decision: record.verdict.decision,
            reason_code: record.verdict.reason_code,
            evaluated_at: record.evaluated_at,
            record: pack.record.get(),
            kid: pack.signature.kid,
            signature: pack.signature.value,
            log_origin: pack.log.origin,
            log_index: pack.log.index,
            sealed_at: pack.sealed_at,
        })
    }
}

/// The decision of an entry: the same values as the database's rows of the decision and its pack.
pub struct Summary<'a> {
    pub tenant_id: TenantRef,
    pub subject: PrincipalRef,
    pub action: String,
    pub decision: String,
    pub reason_code: String,
    pub evaluated_at: DateTime<Utc>,
    /// The signed bytes.
    pub record: &'a str,
    pub kid: &'a str,
    /// In base64.
    pub signature: &'a str,
    pub log_origin: &'a str,
    pub log_index: i64,
    pub sealed_at: DateTime<Utc>,
}
