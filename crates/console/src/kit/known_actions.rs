//! The actions that a tenant's records name, as proposals for a form.

use std::collections::BTreeSet;

use authority_model::proto::{
    delegation::ListDelegationsRequest,
    registry::{ListPurposesRequest, ListToolsRequest},
};

use crate::kit::view::View;

/// The largest page. Further records are not read.
const MOST: i32 = 500;

/// Returns the actions and patterns of the tenant's tools, purposes and delegations. Records that the
/// person may not read, or that cannot be read now, are left out.
pub(crate) async fn known_actions(view: &View, tenant_id: &str) -> BTreeSet<String> {
    let (tenant_id, limit) = (Some(tenant_id.to_owned()), Some(MOST));
    let tools = ListToolsRequest { tenant_id: tenant_id.clone(), limit, ..Default::default() };
    let purposes =
        ListPurposesRequest { tenant_id: tenant_id.clone(), limit, ..Default::default() };
    let delegations = ListDelegationsRequest { tenant_id, limit, ..Default::default() };
    let (tools, purposes, delegations) = tokio::join!(
        view.calls.call(&tools),
        view.calls.call(&purposes),
        view.calls.call(&delegations),
    );
    let tools = tools.unwrap_or_default().tools.into_iter().flat_map(|tool| tool.actions);
    let purposes = purposes.unwrap_or_default().purposes.into_iter();
    let purposes = purposes.flat_map(|purpose| purpose.allowed_actions);
    let delegations = delegations.unwrap_or_default().delegations.into_iter();
    tools.chain(purposes).chain(delegations.flat_map(|one| one.actions)).collect()
}
