//! The actions and purposes that a tenant's records name. A misspelt name is not among them.

use std::collections::BTreeSet;

use authority_model::proto::{
    delegation::{ListDelegationsRequest, ListDelegationsResponse},
    registry::{ListPurposesRequest, ListPurposesResponse, ListToolsRequest, ListToolsResponse},
    runtime::{Decision, ListDecisionsRequest, ListDecisionsResponse},
};

use crate::{rpc, view::View};

/// The largest page. Names on further pages are unknown, and the check then has no result.
const MOST: i32 = 500;

/// The names in a tenant's records.
pub(crate) struct KnownNames {
    /// The actions and patterns of its tools, purposes and delegations, and recently permitted or
    /// held actions, since tools often have only patterns.
    pub(crate) actions: BTreeSet<String>,
    /// The slugs of its purposes.
    pub(crate) purposes: BTreeSet<String>,
}

/// `None` if the person may not read all names, or if there are too many or none can be read now.
pub(crate) async fn known_names(view: &View, tenant_id: &str) -> Option<KnownNames> {
    let needed = [rpc::LIST_TOOLS, rpc::LIST_PURPOSES, rpc::LIST_DELEGATIONS];
    if !needed.into_iter().all(|rpc| view.may(rpc)) {
        return None;
    }
    let decided = decided(view, tenant_id);
    let (tenant_id, limit) = (Some(tenant_id.to_owned()), Some(MOST));
    let tools = ListToolsRequest { tenant_id: tenant_id.clone(), limit, ..Default::default() };
    let purposes =
        ListPurposesRequest { tenant_id: tenant_id.clone(), limit, ..Default::default() };
    let delegations = ListDelegationsRequest { tenant_id, limit, ..Default::default() };
    let (decided, tools, purposes, delegations) = tokio::join!(
        decided,
        view.calls.call::<_, ListToolsResponse>(rpc::LIST_TOOLS, &tools),
        view.calls.call::<_, ListPurposesResponse>(rpc::LIST_PURPOSES, &purposes),
        view.calls.call::<_, ListDelegationsResponse>(rpc::LIST_DELEGATIONS, &delegations),
    );
    let (tools, purposes, delegations) = (tools.ok()?, purposes.ok()?, delegations.ok()?);
    let tokens = [tools.next_page_token, purposes.next_page_token, delegations.next_page_token];
    if tokens.iter().any(Option::is_some) {
        return None;
    }
    let slugs = purposes.purposes.iter().map(|purpose| purpose.slug.clone()).collect();
    let of_tools = tools.tools.into_iter().flat_map(|tool| tool.actions);
    let of_purposes = purposes.purposes.into_iter().flat_map(|purpose| purpose.allowed_actions);
    let given = delegations.delegations.into_iter().flat_map(|delegation| delegation.actions);
    Some(KnownNames {
        actions: of_tools.chain(of_purposes).chain(given).chain(decided).collect(),
        purposes: slugs,
    })
}

/// The actions of the newest decisions that did not deny; none if they cannot be read.
async fn decided(view: &View, tenant_id: &str) -> Vec<String> {
    if !view.may(rpc::LIST_DECISIONS) {
        return Vec::new();
    }
    let request = ListDecisionsRequest {
        tenant_id: Some(tenant_id.to_owned()),
        limit: Some(MOST),
        ..ListDecisionsRequest::default()
    };
    let listed = view.calls.call(rpc::LIST_DECISIONS, &request).await;
    let listed: ListDecisionsResponse = listed.unwrap_or_default();
    let decided = listed.decisions.into_iter();
    let decided = decided.filter(|one| one.decision != i32::from(Decision::Deny));
    decided.map(|one| one.action).collect()
}
