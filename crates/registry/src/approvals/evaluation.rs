//! Evaluates the request of a held decision again. The evaluation uses current authority and the
//! given approvals.

use std::sync::Arc;

use authority_model::{proto::approval::Approval, schema::decisions, wire::Time};
use chrono::{DateTime, Utc};

use crate::flow::prelude::*;
use authority_decision::{
    Draft, Facts,
    facts::{Approval as Given, Signature},
    levels::ApprovalState,
    verdict::ApprovalsNeeded,
};
use authority_evidence as evidence;
use authority_graph::{Graph, time_zones};
use authority_ledger::spending::{self, CounterQuery};

/// The result of the evaluation.
pub(super) enum Judgement {
    /// The approval suffices.
    Ready,
    /// Current authority requires more people.
    More(ApprovalsNeeded),
    /// The request would be denied even with every approval.
    Void,
}

pub(super) async fn evaluate(
    db: &mut Db,
    graph: &Graph,
    approval: &Approval,
    question: [u8; 32],
    given: Vec<Signature>,
    now: DateTime<Utc>,
) -> Result<Judgement, Error> {
    let (asked, facts) = citing(db, graph, approval, question, given, now).await?;
    let verdict = authority_decision::decide(&asked, &facts, now);
    Ok(match verdict.approvals_needed {
        Some(needed) => Judgement::More(needed),
        None if verdict.decision == authority_decision::Decision::Deny => Judgement::Void,
        // No more approvals are needed. If the request would still be held, approvals can't resolve
        // the remaining reason.
        None => Judgement::Ready,
    })
}

/// Returns the stored request and the current facts. The request cites the approval, and the facts
/// contain the approval with these signatures.
pub(super) async fn citing(
    db: &mut Db,
    graph: &Graph,
    approval: &Approval,
    question: [u8; 32],
    given: Vec<Signature>,
    now: DateTime<Utc>,
) -> Result<(authority_decision::Request, Facts), Error> {
    let (record, context): (Vec<u8>, Vec<u8>) = decisions::table
        .find(&approval.decision_id)
        .select((decisions::record, decisions::context))
        .first(db)
        .await?;
    let held = evidence::sealed::request(&record, &context)?.into_draft();
    let held = Draft { approval_id: Some(approval.id.as_str().into()), ..held };
    let (asked, mut facts) = at_present(db, graph, held, now).await?;
    facts.approval = Some(Given {
        id: approval.id.as_str().into(),
        state: ApprovalState::Approved,
        same_question: spending::question(&asked).map_err(evidence::Error::from)? == question,
        same_subject: true,
        given,
        expires_at: approval.expires_at.and_then(Time::moment).unwrap_or(now),
    });
    Ok((asked, facts))
}

/// Returns a stored request and the current facts, including counters. The counters are only read.
pub(super) async fn at_present(
    db: &mut Db,
    graph: &Graph,
    held: Draft,
    now: DateTime<Utc>,
) -> Result<(authority_decision::Request, Facts), Error> {
    let asked = authority_decision::Request::new(Draft { explain: false, ..held })
        .map_err(|_| evidence::Error::Unreadable("a stored request"))?;
    let mut facts = Facts::new(Arc::new(graph.present(db, &asked).await?));
    time_zones::complete(&asked.action, &mut facts, now);
    if let Some(wanted) =
        CounterQuery::of(&asked, &facts.gathered, now).map_err(evidence::Error::from)?
    {
        (facts.spent, _) = wanted.read(db).await?;
    }
    Ok((asked, facts))
}
