//! Decisions on the same agent and action without a request for approval. Only people who may read
//! decisions see them.

use authority_model::proto::{
    approval::Approval,
    runtime::{
        Decision, DecisionSummary, GetDecisionResponse, InspectDecisionRequest,
        ListDecisionsRequest, ListDecisionsResponse,
    },
};

use super::{
    alike::{Compared, Likeness},
    summary::Summary,
};
use crate::{
    calls::some_at_once,
    rpc,
    show::{Amount, Headline, Moment, headline},
    text::{self, outcome},
    view::View,
};

/// The number of decisions that are read, and the number that is shown.
const READ: i32 = 40;
const SHOWN: usize = 8;

pub(super) struct Past {
    pub(super) id: String,
    pub(super) word: &'static str,
    pub(super) reason: String,
    pub(super) at: Option<Moment>,
    pub(super) amount: Option<Amount>,
    pub(super) headline: Headline,
    /// The members that are the same as in the request; empty if all differ.
    pub(super) same: String,
}

/// The newest of them; none if the role may not read decisions.
pub(super) async fn history(view: &View, approval: &Approval, own: &Summary) -> Vec<Past> {
    if !view.may(rpc::LIST_DECISIONS) {
        return Vec::new();
    }
    let request = ListDecisionsRequest {
        tenant_id: Some(approval.tenant_id.clone()),
        subject: Some(approval.subject.clone()),
        action: Some(approval.action.clone()),
        limit: Some(READ),
        ..ListDecisionsRequest::default()
    };
    let listed = view.calls.call(rpc::LIST_DECISIONS, &request).await;
    let listed: ListDecisionsResponse = listed.unwrap_or_default();
    // Held decisions are listed as requests. Decisions with an approval are part of their request.
    let decided = listed.decisions.into_iter().filter(|one| {
        one.decision != i32::from(Decision::RequireApproval) && one.approval_id.is_none()
    });
    some_at_once(decided.take(SHOWN).map(|decided| past(view, decided, own))).await
}

async fn past(view: &View, decided: DecisionSummary, own: &Summary) -> Past {
    let context = context(view, &decided.decision_id).await;
    let amount = context.as_ref().and_then(Amount::of);
    let headline = context.as_ref().map(headline).unwrap_or_default();
    let likeness = Likeness::of(
        &Compared::of(own.amount.as_ref(), &own.headline),
        &Compared::of(amount.as_ref(), &headline),
    );
    Past {
        word: outcome(decided.decision),
        reason: text::reason(&decided.reason_code),
        at: Moment::of_time(decided.evaluated_at, view.now),
        id: decided.decision_id,
        same: likeness.map(|likeness| likeness.same).unwrap_or_default(),
        amount,
        headline,
    }
}

async fn context(view: &View, id: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    if !view.may(rpc::INSPECT_DECISION) {
        return None;
    }
    let request = InspectDecisionRequest { decision_id: id.to_owned(), context: true };
    let read = view.calls.call::<_, GetDecisionResponse>(rpc::INSPECT_DECISION, &request).await;
    Some(read.ok()?.context?.value?.0)
}
