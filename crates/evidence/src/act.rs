//! A person's signed act on a held decision or a delegation.
//!
//! The text contains the person and their comment only as salted digests. With the salts, both can
//! be checked. Once the salts are erased, the signature still verifies, but the text no longer
//! identifies the person.

use authority_crypto::{Signer, random};
use authority_ids::TenantId;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Error, SignedText, digest_text, salted_digest, signed::sign};
use authority_decision::moment;

/// The `kind` of an act: an approval, a decline or another verdict of a person.
pub const ACT_KIND: &str = "svc.approval.act.v1";

/// One act of one person.
pub struct Act<'a> {
    pub tenant_id: &'a TenantId,
    /// The id of the approval request or of the delegation.
    pub about: &'a str,
    /// SHA-256 of the object of the act: the request of a held decision, or a delegation's terms.
    pub question: &'a [u8; 32],
    /// The person: `<iss>|<sub>`.
    pub by: &'a str,
    pub role: &'a str,
    pub verdict: &'a str,
    pub comment: Option<&'a str>,
    /// Whether the person acts in their own interest. Only the tenant's `self_approval` permits
    /// this.
    pub own_interest: bool,
    pub at: DateTime<Utc>,
}

/// A signed act, with the salts of the digests in its text.
pub struct SignedAct {
    pub text: SignedText,
    pub by_salt: [u8; 16],
    /// `None` without a comment.
    pub comment_salt: Option<[u8; 16]>,
}

#[derive(Serialize)]
struct Text<'a> {
    about: &'a str,
    at: String,
    by_digest: String,
    comment_digest: Option<String>,
    kind: &'static str,
    question: String,
    role: &'a str,
    #[serde(rename = "self", skip_serializing_if = "std::ops::Not::not")]
    own_interest: bool,
    tenant_id: &'a str,
    verdict: &'a str,
}

/// Signs an act.
///
/// # Errors
/// Randomness is unavailable, or the act does not serialise, which is a bug.
pub fn sign_act(act: &Act<'_>, signer: &Signer) -> Result<SignedAct, Error> {
    let by_salt = random()?;
    let comment_salt = act.comment.map(|_| random()).transpose()?;
    let comment = act.comment.zip(comment_salt.as_ref());
    let text = Text {
        about: act.about,
        at: moment::text(act.at),
        by_digest: digest(&by_salt, act.by)?,
        comment_digest: comment.map(|(comment, salt)| digest(salt, comment)).transpose()?,
        kind: ACT_KIND,
        question: digest_text(act.question),
        role: act.role,
        own_interest: act.own_interest,
        tenant_id: act.tenant_id.as_str(),
        verdict: act.verdict,
    };
    Ok(SignedAct { text: sign(&text, signer)?, by_salt, comment_salt })
}

/// Returns the salted digest of the text in its JSON form, with quotation marks.
fn digest(salt: &[u8; 16], text: &str) -> Result<String, Error> {
    let text = serde_json_canonicalizer::to_vec(&text)?;
    Ok(digest_text(&salted_digest(salt, &text)))
}
