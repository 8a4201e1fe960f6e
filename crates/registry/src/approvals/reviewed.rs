//! The reality findings that approvers have reviewed.
//!
//! An approval covers the findings that the request showed when it was opened. A later finding is
//! not shown in lists. The approver must name it, because a person can't approve findings they have
//! not seen. `<id>@<since>` names only the finding that began at that time. If the anchor or event
//! later has another finding, the new finding must also be reviewed.

use authority_decision::{levels::RuntimeEffect, moment, verdict::HeldByReality};
use authority_model::{proto::approval::Approval, validate::Violation};
use chrono::{DateTime, Utc};

use super::evaluation;
use crate::flow::prelude::*;
use authority_graph::Graph;

/// Refuses an approval if a finding to review was neither shown nor named.
///
/// # Errors
/// `reality_not_reviewed`, with each finding that must be named.
pub(super) async fn check(
    db: &mut Db,
    graph: &Graph,
    approval: &Approval,
    question: [u8; 32],
    named: &[String],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let (asked, facts) = evaluation::citing(db, graph, approval, question, Vec::new(), now).await?;
    let verdict = authority_decision::decide(&asked, &facts, now);
    let was_shown = |held: &HeldByReality| {
        approval.reality.iter().any(|shown| {
            held.id == *shown.id
                && shown.drift_type == held.drift_type
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
    named.iter().any(|name| match name.strip_prefix(held.id.as_str()) {
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
        "must include `{}`: {} since {since} was not shown when the request was opened",
        held.id, held.drift_type
    );
    Violation::new("reviewed", problem)
}
