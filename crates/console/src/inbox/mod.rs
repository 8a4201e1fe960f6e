//! Held actions and people's answers.
//!
//! People sign exactly the text that they are shown. A form has the digest of the request on its
//! page, and the act is refused for any other digest. People can act only on requests that were
//! opened in their session.

mod act;
mod acts;
mod advice;
mod again;
mod approval;
mod changed;
mod finding;
mod history;
mod lapsed;
mod left_out;
mod list;
mod next;
mod presented;
mod request;
mod rows;
mod several;
mod summary;
mod who_decides;
mod would_be;

pub(crate) use acts::{Act, approving, askers};
pub(crate) use request::read;

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/approvals", get(list::list))
        .route("/console/approvals/several", get(several::confirm).post(several::act))
        .route("/console/approvals/{id}", get(approval::show))
        .route("/console/approvals/{id}/{verb}", get(act::confirm).post(act::act))
}
