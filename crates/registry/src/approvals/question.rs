//! The exact question, as shown to those who approve.
//!
//! It is read from the held decision, and stored nowhere else: erasing it there erases it here. What is
//! shown is what is signed: a text with another digest is not shown.

use authority_model::{
    schema::{approvals, decisions},
    wire::Json,
};
use serde_json::Value;

use super::super::prelude::*;
use authority_core::spending;
use authority_evidence as evidence;

/// Refuses the approval of what cannot be shown; `shown` is the digest of what the person was shown.
pub(super) async fn check(
    db: &mut Db,
    decision_id: &str,
    question: &[u8; 32],
    is_approving: bool,
    shown: Option<&str>,
) -> Result<(), Error> {
    if shown.is_some_and(|shown| shown != evidence::digest_text(question)) {
        return Err(Error::Refused(ErrorCode::RequestDigestDiffers));
    }
    if !is_approving {
        return Ok(());
    }
    let held: Option<(Vec<u8>, Vec<u8>)> = decisions::table
        .find(decision_id)
        .select((decisions::record, decisions::context))
        .first(db)
        .await
        .optional()?;
    let shown = held.and_then(|(record, context)| read(&record, &context, question));
    shown.map(drop).ok_or(Error::Refused(ErrorCode::RequestErased))
}

/// The digest of the question that an approval is for.
pub(super) async fn digest(db: &mut Db, id: &str) -> QueryResult<[u8; 32]> {
    let digest: Vec<u8> =
        approvals::table.find(id).select(approvals::request_digest).first(db).await?;
    digest.try_into().map_err(|_| diesel::result::Error::NotFound)
}

/// The question of a held decision; `None` if its context is gone, or if its digest is not this one.
pub(super) fn read(record: &[u8], context: &[u8], digest: &[u8]) -> Option<Json> {
    let held = evidence::sealed::request(record, context).ok()?;
    if spending::question(&held).ok()? != digest {
        return None;
    }
    match serde_json::to_value(held.question()).ok()? {
        Value::Object(members) => Some(Json(members)),
        _ => None,
    }
}
