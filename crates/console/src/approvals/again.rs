//! A tenant may take approvals only from people who have just signed in: the way there, and back.

use askama::Template;
use authority_api::error::ErrorCode;
use axum::response::Response;
use http::StatusCode;

use crate::{
    frame::{Frame, Section},
    page::page,
    problem::Problem,
    query::encoded,
    view::View,
};

#[derive(Template)]
#[template(path = "again.html")]
struct Again {
    frame: Frame,
    id: String,
    message: String,
    sign_in: String,
}

/// The sign-in in which a person proves anew who they are, and which leads back to the request.
pub(super) fn sign_in(id: &str) -> String {
    format!("/console/sign-in?fresh=yes&to={}", encoded(&format!("/console/approvals/{id}")))
}

/// Whether the refusal is that the person must sign in again.
pub(super) fn is_needed(problem: &Problem) -> bool {
    problem.code == ErrorCode::InsufficientUserAuthentication.word()
}

/// The page that says so. It is a page with a link, since a form's policy does not let its answer lead elsewhere.
pub(super) fn page_for(view: &View, id: &str, message: String) -> Response {
    let again = Again {
        frame: view.frame("Sign in again to approve", Section::Approvals),
        id: id.to_owned(),
        message,
        sign_in: sign_in(id),
    };
    page(StatusCode::FORBIDDEN, &again)
}
