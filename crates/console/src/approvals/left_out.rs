//! Of several requests those that are not approved together with the others, each with the reason.

use authority_model::proto::approval::Approval;

use super::{
    barrier::Barrier,
    finding::to_review,
    summary::{State, Summary},
    would_be::would_be_void,
};
use crate::view::View;

/// What is left out of an approval of several.
#[derive(Default)]
pub(super) struct LeftOut {
    /// Those that were decided meanwhile, or whose time is over.
    pub(super) over: Vec<Over>,
    /// Those that somebody else must decide, or that this person has answered.
    pub(super) not_yours: Vec<Summary>,
    /// Those that an approval would only make void.
    pub(super) denied: Vec<Summary>,
    /// Those that need a review, and so are approved on their own pages.
    pub(super) to_review: Vec<Summary>,
}

pub(super) struct Over {
    pub(super) summary: Summary,
    /// Whose answer was the last, if there is one.
    pub(super) by: Option<String>,
}

impl LeftOut {
    /// Takes them out of the requests.
    pub(super) fn of(view: &View, approvals: &mut Vec<Approval>) -> Self {
        let mut left_out = Self::default();
        approvals.retain(|approval| {
            let summary = || Summary::of(approval, view.now);
            if !State::of(approval, view.now).is_pending {
                left_out.over.push(Over { by: last(approval), summary: summary() });
            } else if Barrier::of(view, approval).is_some() {
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
    // Nobody's answer lets a request expire.
    let last = approval.acts.last().filter(|_| approval.state != "expired")?;
    Some(last.name.clone())
}

/// What needs a review is shown on a request's own page, and nowhere else.
fn needs_review(view: &View, approval: &Approval) -> bool {
    !to_review(approval, view.now).is_empty()
}

/// Why one that waits is not approved together with others.
pub(super) fn why_alone(view: &View, approval: &Approval) -> Option<&'static str> {
    if !State::of(approval, view.now).is_pending {
        return None;
    }
    if would_be_void(approval, view.now) {
        return Some("It would be denied now, so that an approval would only make it void");
    }
    needs_review(view, approval)
        .then_some("It needs a review: open it, and approve it on its own page")
}
