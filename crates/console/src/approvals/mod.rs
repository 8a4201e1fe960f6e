//! Held actions and people's answers.
//!
//! People sign exactly the text that they are shown. A form has the digest of the request on its
//! page, and the act is refused for any other digest. People can act only on requests that were
//! opened in their session.

mod act;
mod acts;
mod advice;
mod again;
mod alike;
mod barrier;
mod changed;
mod finding;
mod history;
mod inbox;
mod label;
mod lapsed;
mod left_out;
mod mine;
mod one;
mod several;
mod summary;
mod would_be;

pub(crate) use acts::{Act, approving, askers};
pub(crate) use alike::Others;
pub(crate) use summary::Summary;

use authority_model::proto::approval::{Approval, GetApprovalRequest};
use axum::{Router, routing::get};
use tonic::Status;

use crate::{Console, rpc, view::View};

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/approvals", get(inbox::list))
        .route("/console/approvals/several", get(several::confirm).post(several::act))
        .route("/console/approvals/{id}", get(one::show))
        .route("/console/approvals/{id}/{verb}", get(act::confirm).post(act::act))
}

/// Reads a request.
///
/// # Errors
/// As the operation answers.
pub(crate) async fn read(view: &View, id: &str) -> Result<Approval, Status> {
    view.calls.call(rpc::GET_APPROVAL, &GetApprovalRequest { id: id.to_owned() }).await
}

/// Whether the session has opened exactly this request.
fn is_opened(view: &View, approval: &Approval) -> bool {
    let shown = view.session.opened.get(&approval.id);
    approval.request.is_some() && shown.is_some_and(|digest| *digest == approval.request_digest)
}

/// Whether this person has answered it.
fn has_acted(view: &View, approval: &Approval) -> bool {
    let person = view.caller.identity();
    approval.acts.iter().any(|act| act.by == person)
}
