//! A person's signed act on a held decision or on a delegation.

use authority_crypto::Signer;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Error, SignedText, digest_text, signed::sign};
use authority_decision::moment;

/// `kind` of an approving or declining act.
pub const ACT_KIND: &str = "svc.approval.act.v1";

/// One act of one person.
pub struct Act<'a> {
    pub tenant_id: &'a str,
    /// The approval or the delegation.
    pub about: &'a str,
    /// SHA-256 of exactly what is approved: the request of a held decision, or a delegation's
    /// terms.
    pub question: &'a [u8; 32],
    /// The person: `<iss>|<sub>`.
    pub by: &'a str,
    pub role: &'a str,
    pub verdict: &'a str,
    pub comment: Option<&'a str>,
    /// Whether it is in the person's own interest, as the tenant's `self_approval` permits.
    pub own_interest: bool,
    pub at: DateTime<Utc>,
}

#[derive(Serialize)]
struct Text<'a> {
    about: &'a str,
    at: String,
    by: &'a str,
    comment: Option<&'a str>,
    kind: &'static str,
    question: String,
    role: &'a str,
    #[serde(rename = "self", skip_serializing_if = "std::ops::Not::not")]
    own_interest: bool,
    tenant_id: &'a str,
    verdict: &'a str,
}

/// # Errors
/// The act does not serialise, which is a bug.
pub fn sign_act(act: &Act<'_>, signer: &Signer) -> Result<SignedText, Error> {
    let text = Text {
        about: act.about,
        at: moment::text(act.at),
        by: act.by,
        comment: act.comment,
        kind: ACT_KIND,
        question: digest_text(act.question),
        role: act.role,
        own_interest: act.own_interest,
        tenant_id: act.tenant_id,
        verdict: act.verdict,
    };
    sign(&text, signer)
}
