//! The selected requests that are not approved together with the others, each with the reason.

use authority_model::proto::approval::Approval;

use super::{
    finding::to_review,
    summary::{State, Summary},
    would_be::would_be_void,
};
use crate::{kit::view::View, texts as t};

/// The requests left out of a common approval.
#[derive(Default)]
pub(super) struct LeftOut {
    /// Requests that were decided in the meantime, or have expired.
    pub(super) over: Vec<Over>,
    /// Requests that another person must decide, or that this person has answered.
    pub(super) not_yours: Vec<Summary>,
    /// Requests that an approval would only make void.
    pub(super) denied: Vec<Summary>,
    /// Requests that need a review. They are approved on their own pages.
    pub(super) to_review: Vec<Summary>,
}

pub(super) struct Over {
    pub(super) summary: Summary,
    /// The person who gave the last answer, if any.
    pub(super) by: Option<String>,
}

impl Over {
    /// Its state, and who answered.
    pub(super) fn state(&self) -> String {
        let state = self.summary.state.label;
        self.by.as_ref().map_or(state.to_owned(), |name| t::inbox::state_by(state, name))
    }
}

impl LeftOut {
    /// Takes them out of the requests.
    pub(super) fn of(view: &View, approvals: &mut Vec<Approval>) -> Self {
        let mut left_out = Self::default();
        approvals.retain(|approval| {
            let summary = || Summary::of(approval, view.now);
            if !State::of(approval, view.now).is_pending {
                left_out.over.push(Over { by: last(approval), summary: summary() });
            } else if approval.ineligibility.is_some() {
                left_out.not_yours.push(summary());
            } else if would_be_void(approval, view.now) {
                left_out.denied.push(summary());
            } else if needs_review(view, approval) {
                left_out.to_review.push(summary());
            } else {
                return true;
            }
            false
        });
        left_out
    }
}

fn last(approval: &Approval) -> Option<String> {
    // A request expires without an answer.
    let last = approval.acts.last().filter(|_| approval.state != "expired")?;
    Some(last.name.clone())
}

/// Findings that need a review are shown only on the request's own page.
fn needs_review(view: &View, approval: &Approval) -> bool {
    !to_review(approval, view.now).is_empty()
}

/// The reason why a pending request is not approved together with others.
pub(super) fn why_alone(view: &View, approval: &Approval) -> Option<&'static str> {
    if !State::of(approval, view.now).is_pending {
        return None;
    }
    if would_be_void(approval, view.now) {
        return Some(t::inbox::DENIED_ALONE);
    }
    needs_review(view, approval).then_some(t::inbox::REVIEW_ALONE)
}
