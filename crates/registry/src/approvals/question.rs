//! The exact request, as shown to approvers.
//!
//! The request is read from the held decision and not stored a second time. If it is erased from
//! the decision, approvals therefore no longer contain it either. A text is shown only if its
//! digest matches the digest that approvers sign.

use authority_model::{
    proto::approval::Approval,
    schema::{approvals, decisions},
    wire::Json,
};
use serde_json::Value;

use crate::flow::prelude::*;
use authority_evidence as evidence;
use authority_ledger::spending;

/// Refuses to approve a request that can't be shown. `shown` is the digest that the person saw.
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
    let shown = request(db, decision_id, question).await?;
    shown.map(drop).ok_or(Error::Refused(ErrorCode::RequestErased))
}

/// Returns the request of a held decision. `None` if it was erased or its digest differs.
pub(super) async fn request(
    db: &mut Db,
    decision_id: &str,
    question: &[u8; 32],
) -> QueryResult<Option<Json>> {
    let held: Option<(Vec<u8>, Vec<u8>)> = decisions::table
        .find(decision_id)
        .select((decisions::record, decisions::context))
        .first(db)
        .await
        .optional()?;
    Ok(held.and_then(|(record, context)| read(&record, &context, question)))
}

/// Returns the request that an approval is for. `None` if it was erased or its digest differs.
pub(crate) async fn asked(db: &mut Db, approval: &Approval) -> QueryResult<Option<Json>> {
    let digest = digest(db, &approval.id).await?;
    request(db, &approval.decision_id, &digest).await
}

/// Returns the digest of the request that an approval is for.
pub(super) async fn digest(db: &mut Db, id: &str) -> QueryResult<[u8; 32]> {
    let digest: Vec<u8> =
        approvals::table.find(id).select(approvals::request_digest).first(db).await?;
    digest.try_into().map_err(|_| diesel::result::Error::NotFound)
}

/// Returns the request of a held decision. `None` if its context was erased or its digest differs
/// from `digest`.
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
