//! The next request after an act. Of the requests that this person may decide, it expires first.

use authority_model::proto::approval::ListApprovalsRequest;

use super::summary::Summary;
use crate::kit::prelude::*;

/// The next request, and the number of all that this person may decide.
pub(super) struct Next {
    pub(super) request: Option<Summary>,
    pub(super) count: i32,
}

/// Reads the next request. `None` if it could not be read.
pub(super) async fn next(view: &View) -> Option<Next> {
    let request = ListApprovalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some("pending".to_owned()),
        order: Some("expiry".to_owned()),
        for_me: true,
        limit: Some(1),
        count: true,
        ..ListApprovalsRequest::default()
    };
    let listed = view.calls.call(&request).await.ok()?;
    let request = listed.approvals.first().map(|first| Summary::of(first, view.now));
    Some(Next { request, count: listed.total.unwrap_or_default() })
}
