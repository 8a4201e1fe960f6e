//! Failures in words, with advice.

use askama::Template;
use authority_api::{error::ErrorCode, identity::who_may};
use axum::response::Response;
use http::StatusCode;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::{
    kit::{
        frame::{Frame, Section},
        page::page,
        view::View,
    },
    texts as t,
};

/// A refusal of the API, as a page shows it.
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The error's code, which a person can look up.
    pub(crate) code: String,
    pub(crate) title: String,
    pub(crate) message: String,
    /// The members with errors, and the errors.
    pub(crate) members: Vec<(String, String)>,
}

impl Problem {
    pub(crate) fn of(status: &Status) -> Self {
        let details = status.get_error_details();
        let reason = details.error_info().map(|info| info.reason.clone()).unwrap_or_default();
        let known = ErrorCode::ALL.iter().find(|code| code.word() == reason).copied();
        let code = known.unwrap_or_else(|| ErrorCode::of(status.code()));
        let violations = details.bad_request().map(|bad| bad.field_violations.as_slice());
        let members = violations.unwrap_or_default().iter();
        Self {
            status: code.http(),
            code: code.word().to_owned(),
            title: title(code.http()).to_owned(),
            message: status.message().to_owned(),
            members: members.map(|v| (v.field.clone(), v.description.clone())).collect(),
        }
    }

    /// The failure of an operation, with the title `undone` unless it may have been committed.
    fn of_act(status: &Status, undone: &str) -> Self {
        let mut problem = Self::of(status);
        if problem.status.is_server_error() {
            t::kit::NOT_CONFIRMED.clone_into(&mut problem.title);
            problem.message.push_str(t::kit::UNCONFIRMED);
        } else {
            undone.clone_into(&mut problem.title);
        }
        problem
    }

    /// One text: the members with their errors, or otherwise the message.
    pub(crate) fn in_words(self) -> String {
        if self.members.is_empty() {
            return self.message;
        }
        let members = self.members.iter().map(|(name, text)| format!("{name}: {text}"));
        members.collect::<Vec<_>>().join("; ")
    }

    fn response(self, view: &View) -> Response {
        let (status, frame) = (self.status, view.frame(self.title.clone(), Section::None));
        page(status, &ProblemPage { frame, problem: self })
    }
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => t::kit::MAY_NOT,
        StatusCode::NOT_FOUND => t::kit::NOT_FOUND,
        StatusCode::CONFLICT => t::kit::NOT_NOW,
        StatusCode::PRECONDITION_FAILED => t::HAS_CHANGED,
        StatusCode::TOO_MANY_REQUESTS => t::kit::TOO_MANY,
        status if status.is_client_error() => t::kit::INVALID,
        _ => t::kit::UNAVAILABLE,
    }
}

/// The response to an address without a page.
pub(crate) fn no_page() -> Status {
    Status::not_found(t::NO_SUCH_PAGE)
}

/// Whether a refusal shows that the record does not exist for this person. After any other refusal
/// the state is unknown, and a page must not claim that the record does not exist.
pub(crate) fn is_absent(status: &Status) -> bool {
    matches!(status.code(), Code::NotFound | Code::PermissionDenied)
}

/// Whether a search was invalid or took too long. The page then leaves its form for another search.
pub(crate) fn is_of_search(status: &Status) -> bool {
    matches!(status.code(), Code::InvalidArgument | Code::Unavailable | Code::DeadlineExceeded)
}

/// The page for a missing permission. It shows the person's role, and the roles that have the
/// permission.
pub(crate) fn refused(view: &View, rpc: &str) -> Status {
    let frame = view.frame("", Section::None);
    let (person, role) = (frame.person, frame.role);
    Status::permission_denied(match who_may(rpc) {
        Some(who) => t::kit::refused_open(person, role, who),
        None => t::kit::refused(person, role),
    })
}

impl View {
    /// The page, or an error page.
    pub(crate) fn answer(&self, answered: Result<Response, Status>) -> Response {
        answered.unwrap_or_else(|status| Problem::of(&status).response(self))
    }

    /// The page after an operation, or the page for its failure. `undone`: the heading, `Not stopped`.
    pub(crate) fn answer_act(&self, undone: &str, answered: Result<Response, Status>) -> Response {
        answered.unwrap_or_else(|status| Problem::of_act(&status, undone).response(self))
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    problem: Problem,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refused_act_was_surely_not_done() {
        let refused = Problem::of_act(&Status::permission_denied("not yours"), "Not stopped");
        assert_eq!(
            (refused.title.as_str(), refused.message.as_str()),
            ("Not stopped", "not yours")
        );
        for lost in [Status::unavailable("retry"), Status::deadline_exceeded("late")] {
            let problem = Problem::of_act(&lost, "Not stopped");
            assert_eq!(problem.title, t::kit::NOT_CONFIRMED);
            assert!(problem.message.ends_with(t::kit::UNCONFIRMED), "{}", problem.message);
        }
    }
}
