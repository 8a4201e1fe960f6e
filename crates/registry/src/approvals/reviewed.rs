//! What approvers have reviewed of reality: what the request showed when it was opened, and what they name.
//!
//! An act meets a review of all that began before it. So what began since the opening, and is not shown in
//! lists, must be named by whoever approves: nobody approves what they were not shown. `<id>@<since>` names what began at
//! that time alone, so that what an anchor or event comes to mean later is not reviewed by the name of what was shown.

use authority_decision::{levels::RuntimeEffect, moment, verdict::HeldByReality};
use authority_model::{proto::approval::Approval, validate::Violation};
use chrono::{DateTime, Utc};

use super::{super::prelude::*, judge};
use authority_core::graph::Graph;

/// Refuses to approve where a review is needed of something that was neither shown nor named.
///
/// # Errors
/// `reality_not_reviewed`, with each thing that is to be named.
pub(super) async fn check(
    db: &mut Db,
    graph: &Graph,
    approval: &Approval,
    question: [u8; 32],
    named: &[String],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let (asked, facts) = judge::citing(db, graph, approval, question, Vec::new(), now).await?;
    let verdict = authority_decision::decide(&asked, &facts, now);
    let was_shown = |held: &HeldByReality| {
        approval.reality.iter().any(|shown| {
            (&shown.id, &shown.drift_type) == (&held.id, &held.drift_type)
                && shown.since == Some(held.since.into())
        })
    };
    let unseen = verdict.held_by_reality.into_iter().filter(|held| {
        held.effect == RuntimeEffect::RequireHumanReview
            && !was_shown(held)
            && !is_named(held, named)
    });
    let unseen: Vec<Violation> = unseen.map(|held| violation(&held)).collect();
    if unseen.is_empty() { Ok(()) } else { Err(Error::NotReviewed(unseen)) }
}

fn is_named(held: &HeldByReality, named: &[String]) -> bool {
    named.iter().any(|name| match name.strip_prefix(&held.id) {
        Some("") => true,
        Some(rest) => {
            let since = rest.strip_prefix('@').map(DateTime::parse_from_rfc3339);
            since.is_some_and(|since| since.is_ok_and(|since| since == held.since))
        }
        None => false,
    })
}

fn violation(held: &HeldByReality) -> Violation {
    let since = moment::text(held.since);
    let problem = format!(
        "does not name `{}`: {} since {since}, which the request did not show when it was opened",
        held.id, held.drift_type
    );
    Violation { field: "reviewed".to_owned(), problem }
}
