//! The page for a request that has changed since the form was shown. It lists the changes; the
//! answer was not sent.

use authority_model::proto::approval::Approval;

use super::{
    acts::{Act, acts},
    again,
    finding::{Finding, to_review},
    request::read,
    summary::{State, Summary},
};
use crate::kit::prelude::*;

/// The state that a page showed, from the fields of its form.
pub(super) struct Shown {
    pub(super) request_digest: String,
    pub(super) presentation_version: String,
    pub(super) state: String,
    pub(super) expires: String,
    pub(super) progress: String,
    /// The shown findings that needed a review, each as `<id>@<since>`. `None` if the answer
    /// reviews no findings.
    pub(super) reviewed: Option<Vec<String>>,
}

impl Shown {
    /// The current state of a request, with the findings that a page has shown.
    pub(super) fn now(now: &Approval, at: DateTime<Utc>, reviewed: Vec<String>) -> Self {
        let summary = Summary::of(now, at);
        Self {
            request_digest: summary.request_digest,
            presentation_version: summary.presented.version,
            state: summary.state.word,
            expires: summary.expires.map(|at| at.exact).unwrap_or_default(),
            progress: summary.progress,
            reviewed: Some(reviewed),
        }
    }

    pub(super) fn of(form: &Pairs, reviewed: Option<Vec<String>>) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        Self {
            request_digest: text("request_digest"),
            presentation_version: text("presentation_version"),
            state: text("state"),
            expires: text("expires"),
            progress: text("progress"),
            reviewed,
        }
    }

    /// Whether a finding needs a review and was not shown. Always false if the request is not
    /// pending.
    pub(super) fn lacks_review(&self, now: &Approval, at: DateTime<Utc>) -> bool {
        !self.not_reviewed(now, at).is_empty()
    }

    fn not_reviewed(&self, now: &Approval, at: DateTime<Utc>) -> Vec<Finding> {
        let waits = State::of(now, at).is_pending;
        let Some(reviewed) = self.reviewed.as_ref().filter(|_| waits) else { return Vec::new() };
        let mut findings = to_review(now, at);
        findings.retain(|found| !reviewed.contains(&found.key));
        findings
    }

    /// The members of the request that differ now: each as it was, and as it is.
    pub(super) fn differences(&self, view: &View, now: &Approval) -> Vec<Difference> {
        let summary = Summary::of(now, view.now);
        let expires = summary.expires.map(|at| at.exact).unwrap_or_default();
        let version = now.presentation_version.as_str();
        let digest =
            if now.request.is_some() { now.request_digest.as_str() } else { t::inbox::ERASED };
        let members = [
            (t::REQUEST, self.request_digest.as_str(), digest),
            (t::inbox::HOW_SHOWN, self.presentation_version.as_str(), version),
            (t::STATE, self.state.as_str(), summary.state.word.as_str()),
            (t::EXPIRES, self.expires.as_str(), expires.as_str()),
            (t::APPROVALS, self.progress.as_str(), summary.progress.as_str()),
        ];
        let members =
            members.into_iter().filter(|(_, then, now)| then != now).map(|(name, then, now)| {
                Difference { name, then: then.to_owned(), now: now.to_owned() }
            });
        let new = self.not_reviewed(now, view.now).into_iter().map(|found| Difference {
            name: t::inbox::TO_REVIEW,
            then: t::inbox::NOT_SHOWN.to_owned(),
            now: found.line(),
        });
        members.chain(new).collect()
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
    /// The answers that other people gave in the meantime.
    acts: Vec<Act>,
    differences: Vec<Difference>,
}

/// The page for a refused act. If the request has changed, it lists the changes.
pub(super) async fn refused(
    view: &View,
    id: &str,
    shown: &Shown,
    status: Status,
    undone: &'static str,
) -> Response {
    let problem = Problem::of(&status);
    if again::is_needed(&problem) {
        return again::page_for(view, id, &problem.message, undone);
    }
    if ![StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED].contains(&problem.status) {
        return view.answer_act(undone, Err(status));
    }
    match read(view, id).await {
        Ok(approval) => differs(view, &approval, shown, Some(problem.message), undone),
        Err(_) => view.answer_act(undone, Err(status)),
    }
}

/// The page for a request that differs from the form. `undone`: the failure's heading.
pub(super) fn differs(
    view: &View,
    approval: &Approval,
    shown: &Shown,
    message: Option<String>,
    undone: &'static str,
) -> Response {
    let text = match message {
        Some(reason) => t::not_done_because(reason),
        None => t::inbox::DIFFERS.to_owned(),
    };
    let frame = view.frame(t::HAS_CHANGED, Section::Approvals);
    let changed = Changed {
        frame: frame.failed(undone, text, None),
        id: approval.id.clone(),
        state: State::of(approval, view.now),
        acts: acts(view, approval),
        differences: shown.differences(view, approval),
    };
    page(StatusCode::CONFLICT, &changed)
}
