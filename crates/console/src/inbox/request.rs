//! Reads an approval request. Whether the session has opened it, and whether its person has answered.

use authority_model::proto::approval::{Approval, GetApprovalRequest};
use authority_presentation::translate;

use crate::kit::prelude::*;

/// Reads a request.
///
/// # Errors
/// As the operation answers.
pub(crate) async fn read(view: &View, id: &str) -> Result<Approval, Status> {
    let request = GetApprovalRequest { id: id.to_owned() };
    let approval = view.calls.call(&request).await?;
    Ok(translated(view, approval))
}

/// The request with its titles in the person's language.
pub(super) fn translated(view: &View, mut approval: Approval) -> Approval {
    if let Some(presentation) = &mut approval.presentation {
        translate(presentation, &view.languages);
    }
    approval
}

/// Whether the session has opened exactly this request.
pub(super) fn is_opened(view: &View, approval: &Approval) -> bool {
    let shown = view.session.opened.get(&approval.id);
    approval.request.is_some() && shown.is_some_and(|digest| *digest == approval.request_digest)
}

/// Whether this person has answered it.
pub(super) fn has_acted(view: &View, approval: &Approval) -> bool {
    let person = view.caller.identity();
    approval.acts.iter().any(|act| act.by == person)
}
