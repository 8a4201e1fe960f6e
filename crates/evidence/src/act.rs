//! A person's signed act on a held decision or on a delegation.
//!
//! The text names the person, and what they wrote, only by salted digests. Whoever has the salts can check both;
//! once they are erased, the signature still verifies and tells nobody who it was.

use authority_crypto::{Signer, random};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Error, SignedText, digest_text, salted_digest, signed::sign};
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

/// A signed act, with the salts of the digests in it.
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

/// # Errors
/// There is no randomness, or the act does not serialise, which is a bug.
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
        tenant_id: act.tenant_id,
        verdict: act.verdict,
    };
    Ok(SignedAct { text: sign(&text, signer)?, by_salt, comment_salt })
}

/// Of a text as JSON, like the digests of contexts.
fn digest(salt: &[u8; 16], text: &str) -> Result<String, Error> {
    let text = serde_json_canonicalizer::to_vec(&text)?;
    Ok(digest_text(&salted_digest(salt, &text)))
}
