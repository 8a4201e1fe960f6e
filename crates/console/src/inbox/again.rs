//! The way to a new sign-in and back. A tenant may accept approvals only after a recent sign-in.

use authority_api::error::ErrorCode;
use chrono::TimeDelta;

use crate::kit::prelude::*;

#[derive(Template)]
#[template(path = "again.html")]
struct Again {
    frame: Frame,
    id: String,
    /// `None` if a new sign-in would not help.
    sign_in: Option<String>,
}

/// If the person signed in within this time and the token lacks that time, a new sign-in won't help.
const JUST: TimeDelta = TimeDelta::minutes(5);

/// The address of a new sign-in that returns to the request. `None` if the person has just signed
/// in and the provider's access token has no time of the sign-in: a new token would not have it
/// either.
pub(super) fn sign_in(view: &View, id: &str) -> Option<String> {
    let is_said = view.caller.authenticated_at.is_some();
    if !is_said && view.now - view.session.authenticated_at < JUST {
        return None;
    }
    let to = encoded(&format!("/console/approvals/{id}"));
    Some(format!("/console/sign-in?fresh=yes&to={to}"))
}

/// Whether the refusal is that the person must sign in again.
pub(super) fn is_needed(problem: &Problem) -> bool {
    problem.code == ErrorCode::InsufficientUserAuthentication.word()
}

/// The page that explains the new sign-in. It has a link, because the form's content security
/// policy forbids a redirect to another origin.
pub(super) fn page_for(view: &View, id: &str, message: &str, undone: &str) -> Response {
    let frame = view.frame(t::inbox::SIGN_IN_TO_APPROVE, Section::Approvals);
    let again = Again {
        frame: frame.failed(undone, t::not_done_because(message), None),
        id: id.to_owned(),
        sign_in: sign_in(view, id),
    };
    page(StatusCode::FORBIDDEN, &again)
}
