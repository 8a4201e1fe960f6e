//! Other requests of the same agent for the same action, and decisions without a request. Only people
//! who may read decisions see the decisions.

use authority_model::proto::{
    approval::{Approval, ListApprovalsRequest, ListApprovalsResponse},
    runtime::{Decision, ListDecisionsRequest, ListDecisionsResponse},
};

use super::{request::translated, summary::Summary};
use crate::kit::{prelude::*, show::Decided};

/// The number of decisions that are read, and the number of decisions and requests that are shown.
const READ: i32 = 40;
const SHOWN: usize = 8;

/// The newest other requests of the agent for the action.
pub(super) async fn requests(view: &View, approval: &Approval) -> Vec<Summary> {
    if !view.may(rpc::LIST_APPROVALS) {
        return Vec::new();
    }
    let request = ListApprovalsRequest {
        tenant_id: Some(approval.tenant_id.clone()),
        subject: Some(approval.subject.clone()),
        action: Some(approval.action.clone()),
        order: Some("newest".to_owned()),
        limit: i32::try_from(SHOWN + 1).ok(),
        ..ListApprovalsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let listed: ListApprovalsResponse = listed.unwrap_or_default();
    let others = listed.approvals.into_iter().filter(|other| other.id != approval.id);
    let others = others.take(SHOWN).map(|other| translated(view, other));
    others.map(|other| Summary::of(&other, view.now)).collect()
}

/// The newest decisions; none if the role may not read decisions.
pub(super) async fn history(view: &View, approval: &Approval) -> Vec<Decided> {
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
    let listed = view.calls.call(&request).await;
    let listed: ListDecisionsResponse = listed.unwrap_or_default();
    // Held decisions are listed as requests. Decisions with an approval are part of their request.
    let decided = listed.decisions.into_iter().filter(|one| {
        one.decision != i32::from(Decision::RequireApproval) && one.approval_id.is_none()
    });
    decided.take(SHOWN).map(Decided::from).collect()
}
