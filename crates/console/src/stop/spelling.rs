//! What a person is told of an action that no record of the tenant names, before it is stopped.

use std::collections::BTreeSet;

use authority_model::proto::{
    delegation::{ListDelegationsRequest, ListDelegationsResponse},
    registry::{ListPurposesRequest, ListPurposesResponse, ListToolsRequest, ListToolsResponse},
};

use super::target::Target;
use crate::{rpc, unknown_action::unknown_action, view::View};

/// The largest page. Of what is not on it nothing is known, and nothing is said.
const MOST: i32 = 500;

/// `None` if the action is known, or if that could not be read: a stop is urgent.
pub(super) async fn warning(view: &View, target: &Target) -> Option<String> {
    let action = target.actions.first().filter(|_| target.tool.is_none())?;
    let needed = [rpc::LIST_TOOLS, rpc::LIST_PURPOSES, rpc::LIST_DELEGATIONS];
    if !needed.into_iter().all(|rpc| view.may(rpc)) {
        return None;
    }
    unknown_action(action, &names(view, &target.tenant_id).await?)
}

/// The actions and patterns of the tenant's tools, purposes and delegations.
async fn names(view: &View, tenant_id: &str) -> Option<BTreeSet<String>> {
    let (tenant_id, limit) = (Some(tenant_id.to_owned()), Some(MOST));
    let tools = ListToolsRequest { tenant_id: tenant_id.clone(), limit, ..Default::default() };
    let purposes =
        ListPurposesRequest { tenant_id: tenant_id.clone(), limit, ..Default::default() };
    let delegations = ListDelegationsRequest { tenant_id, limit, ..Default::default() };
    let (tools, purposes, delegations) = tokio::join!(
        view.calls.call::<_, ListToolsResponse>(rpc::LIST_TOOLS, &tools),
        view.calls.call::<_, ListPurposesResponse>(rpc::LIST_PURPOSES, &purposes),
        view.calls.call::<_, ListDelegationsResponse>(rpc::LIST_DELEGATIONS, &delegations),
    );
    let (tools, purposes, delegations) = (tools.ok()?, purposes.ok()?, delegations.ok()?);
    let tokens = [tools.next_page_token, purposes.next_page_token, delegations.next_page_token];
    if tokens.iter().any(Option::is_some) {
        return None;
    }
    let of_tools = tools.tools.into_iter().flat_map(|tool| tool.actions);
    let of_purposes = purposes.purposes.into_iter().flat_map(|purpose| purpose.allowed_actions);
    let given = delegations.delegations.into_iter().flat_map(|delegation| delegation.actions);
    Some(of_tools.chain(of_purposes).chain(given).collect())
}
