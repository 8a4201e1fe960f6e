//! `mcp list`: the tenant's MCP servers, or the tools of one.

use authority_ids::TenantRef;
use clap::Args;
use serde_json::{Value, json};

use super::api::Servers;
use crate::{
    arguments::tenant,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    table,
    text::of,
};

#[derive(Debug, Args)]
pub struct List {
    /// List the tools of this MCP server
    #[arg(long = "server", value_name = "SLUG")]
    slug: Option<String>,
    /// The tenant's id or slug, for the owner
    #[arg(long, value_parser = tenant())]
    tenant: Option<TenantRef>,
    #[command(flatten)]
    service: ServerArgs,
}

impl List {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.service).await?;
        let servers = Servers { server: &server, tenant: self.tenant.as_ref() };
        let (columns, found): (&[&str], Vec<Value>) = match &self.slug {
            None => {
                (&["slug", "state", "id"], servers.all().await?.iter().map(server_line).collect())
            }
            Some(slug) => {
                let found = servers.find(slug).await?;
                let tools = servers.tools(of(&found, "id")).await?;
                (&["name", "pin", "action", "effect", "id"], tools.iter().map(tool_line).collect())
            }
        };
        let text = table::text(columns, &found, None, server.view());
        let name = if self.slug.is_some() { "tools" } else { "mcp_servers" };
        let json = Some(json!({ name: found }).to_string());
        Ok(CommandOutput { text, json, ..CommandOutput::default() })
    }
}

fn server_line(app: &Value) -> Value {
    json!({"slug": app["mcp"]["slug"], "state": app["state"], "id": app["id"]})
}

fn tool_line(tool: &Value) -> Value {
    json!({"name": tool["mcp"]["name"], "pin": tool["mcp"]["pin"], "action": tool["actions"][0],
        "effect": tool["action_declaration"]["effect_class"], "id": tool["id"]})
}
