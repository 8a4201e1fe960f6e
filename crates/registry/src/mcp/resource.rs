//! Finds the resource that an argument of a tool's call names.

use authority_model::{
    proto::registry::*,
    schema::{resources, tools},
    state::ToolState,
};
use diesel::{dsl::sql, sql_types::Text};
use tonic::Response;

use super::{bound::Bound, pin_states::PINNED, server};
use crate::flow::prelude::*;

pub(super) async fn look_up(
    registry: &Registry,
    call: Request<LookUpMcpResourceRequest>,
) -> Reply<LookUpMcpResourceResponse> {
    let (caller, request) = admitted(call)?;
    let tenant = server::tenant(registry, &caller, request.tenant_id.as_deref()).await?;
    let bound = Bound::of(registry, &caller, &tenant)?;
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let server = server::find(db, &tenant, &request.slug).await?;
        let tools = naming(db, &server, &request.kind).await?;
        let is_named =
            tools.iter().any(|actions| bound.as_ref().is_none_or(|bound| bound.may_call(actions)));
        // The answer is the same for a kind that no tool names. A key can't search other kinds.
        let found = if is_named { find(db, &tenant, &request).await? } else { None };
        let id = request.external_id;
        found.ok_or(Error::NotFound { kind: "resource", id })
    });
    let resource_id = read.await?;
    Ok(Response::new(LookUpMcpResourceResponse { resource_id }))
}

/// Returns the actions of each tool whose calls name resources of this kind. Calls of a tool that is
/// not pinned are denied without a look-up.
async fn naming(db: &mut Db, server: &ExternalApp, kind: &str) -> QueryResult<Vec<Vec<String>>> {
    tools::table
        .filter(tools::tenant_id.eq(&server.tenant_id))
        .filter(tools::state.ne(ToolState::Deprecated))
        .filter(sql::<Bool>("mcp ->> 'server_id' = ").bind::<Text, _>(&server.id))
        .filter(sql::<Bool>("mcp ->> 'pin' = ").bind::<Text, _>(PINNED))
        .filter(sql::<Bool>("mcp #>> '{context_map,resource,kind}' = ").bind::<Text, _>(kind))
        .select(tools::actions)
        .load(db)
        .await
}

async fn find(
    db: &mut Db,
    tenant: &TenantId,
    request: &LookUpMcpResourceRequest,
) -> QueryResult<Option<String>> {
    resources::table
        .filter(resources::tenant_id.eq(tenant.as_str()))
        .filter(resources::kind.eq(&request.kind))
        .filter(resources::external_id.eq(&request.external_id))
        .select(resources::id)
        .first(db)
        .await
        .optional()
}
