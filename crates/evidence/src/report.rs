//! A signed report of the outcome of a permitted decision.

use authority_crypto::Signer;
use authority_ids::{DecisionId, TenantId};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Error, SignedText, digest_text, signed::sign};
use authority_decision::moment;

/// `kind` of an outcome report.
pub const REPORT_KIND: &str = "svc.decision.report.v1";

/// The outcome of one decision.
pub struct OutcomeReport<'a> {
    pub tenant_id: &'a TenantId,
    pub decision_id: &'a DecisionId,
    /// SHA-256 of the decision's record. It binds the report to the decision.
    pub record_digest: &'a [u8; 32],
    /// `executed`, `failed` or `abandoned`.
    pub outcome: &'a str,
    pub at: DateTime<Utc>,
    pub detail: Option<&'a str>,
    /// The id of an API key, or a person as `<iss>|<sub>`.
    pub reported_by: &'a str,
}

#[derive(Serialize)]
struct Text<'a> {
    at: String,
    decision_id: &'a str,
    detail: Option<&'a str>,
    kind: &'static str,
    outcome: &'a str,
    record_digest: String,
    reported_by: &'a str,
    tenant_id: &'a str,
}

/// Signs a report.
///
/// # Errors
/// The report does not serialise, which is a bug.
pub fn sign_report(report: &OutcomeReport<'_>, signer: &Signer) -> Result<SignedText, Error> {
    let text = Text {
        at: moment::text(report.at),
        decision_id: report.decision_id.as_str(),
        detail: report.detail,
        kind: REPORT_KIND,
        outcome: report.outcome,
        record_digest: digest_text(report.record_digest),
        reported_by: report.reported_by,
        tenant_id: report.tenant_id.as_str(),
    };
    sign(&text, signer)
}
