//! The rules of the records behind MCP servers: external apps, tools and grants.

use authority_decision::{Pattern, input_schema::InputAt};
use authority_model::{proto::registry::*, schema::external_apps};

use crate::flow::prelude::*;

/// The `connector_kind` of an MCP server.
const CONNECTOR: &str = "mcp";

/// Checks the fields of an external app.
pub(crate) fn check_app(app: &ExternalApp, found: &mut Violations) {
    if app.mcp.is_some() && app.connector_kind != CONNECTOR {
        found.add("connector_kind", format!("must be `{CONNECTOR}` for an MCP server"));
    }
}

/// Completes a new external app, and checks a change. The slug is a part of actions, and tools refer
/// to the server.
pub(crate) fn complete_app(
    app: &mut ExternalApp,
    was: Option<&ExternalApp>,
    caller: &Caller,
) -> Result<(), Error> {
    let slug = |app: &ExternalApp| app.mcp.as_ref().map(|mcp| mcp.slug.clone());
    if let Some(own) = was.and_then(slug) {
        if slug(app).as_ref() == Some(&own) {
            return Ok(());
        }
        return Err(Error::field("external_app.mcp.slug", format!("must stay `{own}`")));
    }
    if let Some(slug) = slug(app).filter(|_| was.is_none() && app.actions.is_empty()) {
        app.actions = vec![format!("mcp.{slug}.*")];
    }
    if was.is_none() && caller.tenant().is_some() && !is_own_server(app) {
        let text = "only the installation's owner creates apps other than MCP servers with actions \
                    below `mcp.<slug>`";
        return Err(Error::Role(text.to_owned()));
    }
    Ok(())
}

/// Whether the app is an MCP server with actions of its own only.
fn is_own_server(app: &ExternalApp) -> bool {
    let Some(mcp) = &app.mcp else { return false };
    let Ok(own) = format!("mcp.{}.*", mcp.slug).parse::<Pattern>() else { return false };
    let within = |action: &String| action.parse::<Pattern>().is_ok_and(|it| it.is_within(&own));
    app.actions.iter().all(within)
}

/// Checks a tool. `mcp` is set by reports and by pins. An update changes only the part that a gateway
/// reads.
pub(crate) fn complete_tool(tool: &mut Tool, was: Option<&Tool>) -> Result<(), Error> {
    match (&mut tool.mcp, was.and_then(|was| was.mcp.as_ref())) {
        (None, None) => return Ok(()),
        (Some(_), None) => {
            let problem = "cannot be set: a tool of an MCP server is created when its definition is \
                           reported";
            return Err(Error::field("tool.mcp", problem));
        }
        (None, Some(_)) => {
            return Err(Error::field("tool.mcp", "cannot be cleared; deprecate the tool"));
        }
        (Some(mcp), Some(own)) => {
            check_same(mcp, own)?;
            *mcp = McpTool {
                context_map: mcp.context_map.take(),
                redact: std::mem::take(&mut mcp.redact),
                rounds: mcp.rounds.take().or_else(|| Some("ask".to_owned())),
                ..own.clone()
            };
        }
    }
    if was.is_some_and(|was| was.input_schema != tool.input_schema) {
        let problem = "is the schema of the pinned definition and cannot be changed";
        return Err(Error::field("tool.input_schema", problem));
    }
    tool.input_at = Some(InputAt::Arguments.word().to_owned());
    Ok(())
}

/// Refuses other values of the fields that only the service sets. A client may repeat the values that
/// it has read.
fn check_same(mcp: &McpTool, own: &McpTool) -> Result<(), Error> {
    let digest = |mcp: &McpTool| mcp.definition_digest.clone().unwrap_or_default();
    let fields = [
        ("server_id", mcp.server_id.clone(), own.server_id.clone()),
        ("name", mcp.name.clone(), own.name.clone()),
        ("definition_digest", digest(mcp), digest(own)),
        ("pin", mcp.pin.clone(), own.pin.clone()),
        ("seen_digest", mcp.seen_digest.clone(), own.seen_digest.clone()),
    ];
    let changed = fields.into_iter().find(|(_, given, own)| !given.is_empty() && given != own);
    match changed {
        None => Ok(()),
        Some((name, ..)) => Err(Error::field(&format!("tool.mcp.{name}"), "is set by the service")),
    }
}

/// Refuses a new grant of a tenant's admin, unless it is for an MCP server with actions of its own.
pub(crate) async fn check_grant(db: &mut Db, uses: &Uses) -> Result<(), Error> {
    let app: Option<ExternalApp> = external_apps::table
        .filter(external_apps::tenant_id.eq(&uses.tenant_id))
        .filter(external_apps::id.eq(&uses.used_id))
        .for_share()
        .select(ExternalApp::as_select())
        .first(db)
        .await
        .optional()?;
    if uses.used_kind == ExternalApp::KIND && app.as_ref().is_some_and(is_own_server) {
        return Ok(());
    }
    let text = "only the installation's owner grants uses other than MCP servers with actions below \
                `mcp.<slug>`";
    Err(Error::Role(text.to_owned()))
}
