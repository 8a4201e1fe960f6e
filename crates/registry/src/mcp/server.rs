//! Finds MCP servers and their tools.

use std::collections::HashMap;

use authority_api::named_tenant;
use authority_model::{
    proto::registry::*,
    schema::{external_apps, tools},
    state::ToolState,
};
use diesel::{dsl::sql, sql_types::Text};
use tonic::Response;

use super::{advice, definitions};
use crate::flow::prelude::*;

/// Returns the tenant of a request. The installation's owner must name it.
pub(super) async fn tenant(
    registry: &Registry,
    caller: &Caller,
    named: Option<&str>,
) -> Result<TenantId, Error> {
    named_tenant::known(&registry.store, caller, named).await?;
    let tenant = match (named, caller.tenant()) {
        (Some(named), _) => TenantId::parse(named).ok(),
        (None, own) => own.cloned(),
    };
    tenant.ok_or_else(|| Error::field("tenant_id", "is required"))
}

/// Returns the server with this slug.
pub(super) async fn find(db: &mut Db, tenant: &TenantId, slug: &str) -> Result<ExternalApp, Error> {
    let found = external_apps::table
        .filter(external_apps::tenant_id.eq(tenant.as_str()))
        .filter(sql::<Bool>("mcp ->> 'slug' = ").bind::<Text, _>(slug))
        .select(ExternalApp::as_select())
        .first(db)
        .await
        .optional()?;
    found.ok_or_else(|| unknown(slug))
}

/// Returns the server with this slug, locked until the transaction ends. Reports are then stored one
/// after the other.
pub(super) async fn lock(db: &mut Db, tenant: &TenantId, slug: &str) -> Result<ExternalApp, Error> {
    let id = find(db, tenant, slug).await?.id;
    ExternalApp::lock(db, Some(tenant), &id).await.optional()?.ok_or_else(|| unknown(slug))
}

fn unknown(slug: &str) -> Error {
    Error::NotFound { kind: "MCP server", id: slug.to_owned() }
}

/// Returns the server's tools that are not deprecated.
pub(super) async fn tools(db: &mut Db, server: &ExternalApp) -> QueryResult<Vec<Tool>> {
    tools::table
        .filter(tools::tenant_id.eq(&server.tenant_id))
        .filter(tools::state.ne(ToolState::Deprecated))
        .filter(sql::<Bool>("mcp ->> 'server_id' = ").bind::<Text, _>(&server.id))
        .select(Tool::as_select())
        .load(db)
        .await
}

/// Returns the same tools, locked until the transaction ends: a report writes whole rows.
pub(super) async fn lock_tools(db: &mut Db, server: &ExternalApp) -> QueryResult<Vec<Tool>> {
    tools::table
        .filter(tools::tenant_id.eq(&server.tenant_id))
        .filter(tools::state.ne(ToolState::Deprecated))
        .filter(sql::<Bool>("mcp ->> 'server_id' = ").bind::<Text, _>(&server.id))
        .order(tools::id)
        .for_update()
        .select(Tool::as_select())
        .load(db)
        .await
}

/// Reads a server with its tools and their pinned definitions.
pub(super) async fn get(
    registry: &Registry,
    call: Request<GetMcpServerRequest>,
) -> Reply<GetMcpServerResponse> {
    let (caller, request) = admitted(call)?;
    let tenant = tenant(registry, &caller, request.tenant_id.as_deref()).await?;
    let of = tenant.clone();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let server = find(db, &of, &request.slug).await?;
        let tools = tools(db, &server).await?;
        let texts = definitions::of(db, &tools).await?;
        Ok::<_, Error>((server, tools, texts))
    });
    let (server, tools, texts) = read.await?;
    let mut texts: HashMap<_, _> =
        texts.into_iter().map(|(id, digest, text)| ((id, digest), text)).collect();
    let is_advised = server.mcp.as_ref().is_some_and(|mcp| mcp.advice_in_descriptions);
    let handle =
        if is_advised { registry.graph.tenant(&tenant).map_err(Error::from)? } else { None };
    let mut shown = Vec::with_capacity(tools.len());
    for tool in tools {
        let Some(mut mcp) = tool.mcp else { continue };
        if let Some(digest) = &mcp.definition_digest {
            let text = texts.remove(&(tool.id.clone(), digest.clone()));
            mcp.definition = text.map(|text| definitions::object(&text)).transpose()?;
        }
        let action = tool.actions.as_slice().first();
        let advice = handle
            .as_ref()
            .zip(action)
            .map(|(handle, action)| advice::on(&handle.read(), action, registry.clock.now()));
        let advice = advice.unwrap_or_default();
        shown.push(McpServerTool { id: tool.id, actions: tool.actions, mcp: Some(mcp), advice });
    }
    let name = |tool: &McpServerTool| tool.mcp.as_ref().map(|mcp| mcp.name.clone());
    shown.sort_by_cached_key(name);
    let ExternalApp { id, state, mcp, .. } = server;
    Ok(Response::new(GetMcpServerResponse { id, state, mcp, tools: shown }))
}
