//! A request that is not what a form's page showed: nothing was done, and this says what has changed.

use askama::Template;
use authority_model::proto::approval::Approval;
use axum::response::Response;
use http::StatusCode;
use tonic::Status;

use super::{again, read, summary::State};
use crate::{
    frame::{Frame, Section},
    page::page,
    problem::Problem,
    query::Pairs,
    view::View,
};

/// What a page showed, as its form says.
pub(super) struct Shown {
    pub(super) request_digest: String,
    pub(super) state: String,
    pub(super) expires: String,
    pub(super) progress: String,
}

impl Shown {
    pub(super) fn of(form: &Pairs) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        Self {
            request_digest: text("request_digest"),
            state: text("state"),
            expires: text("expires"),
            progress: text("progress"),
        }
    }

    /// The members of the request that differ now: each as it was, and as it is.
    pub(super) fn differences(&self, view: &View, now: &Approval) -> Vec<Difference> {
        let summary = super::summary::Summary::of(now, view.now);
        let expires = summary.expires.map(|at| at.exact).unwrap_or_default();
        let digest = if now.request.is_some() { now.request_digest.as_str() } else { "erased" };
        [
            ("Request", self.request_digest.as_str(), digest),
            ("State", self.state.as_str(), summary.state.word.as_str()),
            ("Expires", self.expires.as_str(), expires.as_str()),
            ("Approvals", self.progress.as_str(), summary.progress.as_str()),
        ]
        .into_iter()
        .filter(|(_, then, now)| then != now)
        .map(|(name, then, now)| Difference { name, then: then.to_owned(), now: now.to_owned() })
        .collect()
    }
}

pub(super) struct Difference {
    pub(super) name: &'static str,
    pub(super) then: String,
    pub(super) now: String,
}

#[derive(Template)]
#[template(path = "changed.html")]
struct Changed {
    frame: Frame,
    id: String,
    state: State,
    differences: Vec<Difference>,
    message: Option<String>,
}

/// The page for a refusal of an act: where the request has changed, what.
pub(super) async fn refused(view: &View, id: &str, shown: &Shown, status: Status) -> Response {
    let problem = Problem::of(&status);
    if again::is_needed(&problem) {
        return again::page_for(view, id, problem.message);
    }
    if ![StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED].contains(&problem.status) {
        return view.answer(Err(status));
    }
    match read(view, id).await {
        Ok(approval) => differs(view, &approval, shown, Some(problem.message)),
        Err(_) => view.answer(Err(status)),
    }
}

/// The page for a request that differs from what was shown.
pub(super) fn differs(
    view: &View,
    approval: &Approval,
    shown: &Shown,
    message: Option<String>,
) -> Response {
    let changed = Changed {
        frame: view.frame("This has changed", Section::Approvals),
        id: approval.id.clone(),
        state: State::of(approval, view.now),
        differences: shown.differences(view, approval),
        message,
    };
    page(StatusCode::CONFLICT, &changed)
}
