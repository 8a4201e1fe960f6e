//! `mcp pin`: shows definitions that are not pinned, and pins them.

use authority_ids::TenantRef;
use clap::Args;
use serde_json::{Value, json};

use super::{
    api::Servers,
    definitions::{shown, waits},
};
use crate::{
    arguments::tenant,
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    text::{of, plain},
};

#[derive(Debug, Args)]
pub struct Pin {
    /// The slug of the MCP server at the service
    #[arg(long = "server", value_name = "SLUG")]
    slug: String,
    /// Only this tool; repeat it
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Pin every definition without asking, for a first set-up
    #[arg(long)]
    accept_all: bool,
    /// The tenant's id or slug, for the owner
    #[arg(long, value_parser = tenant())]
    tenant: Option<TenantRef>,
    #[command(flatten)]
    service: ServerArgs,
}

impl Pin {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.service).await?;
        let servers = Servers { server: &server, tenant: self.tenant.as_ref() };
        let found = servers.find(&self.slug).await?;
        let tools = servers.tools(of(&found, "id")).await?;
        let is_meant = |tool: &Value| {
            self.tools.is_empty() || self.tools.iter().any(|name| tool["mcp"]["name"] == **name)
        };
        let absent = |name: &&String| !tools.iter().any(|tool| tool["mcp"]["name"] == ***name);
        if let Some(name) = self.tools.iter().find(absent) {
            return Err(Failure::new(format!("the server has no tool `{}`", plain(name))));
        }
        let tools: Vec<_> =
            tools.into_iter().filter(|tool| waits(tool) && is_meant(tool)).collect();
        let pinned = pin_each(&servers, &tools, Confirm { yes: self.accept_all }).await?;
        Ok(pinned_output(&pinned, tools.len()))
    }
}

/// Shows each definition, and pins it if the person agrees. Returns the names of the pinned tools.
pub(super) async fn pin_each(
    servers: &Servers<'_>,
    tools: &[Value],
    confirm: Confirm,
) -> Result<Vec<String>, Failure> {
    let mut pinned = Vec::new();
    for tool in tools {
        let tool = servers.whole(tool).await?;
        let name = plain(of(&tool["mcp"], "name"));
        if confirm.agree(&shown(&tool), &format!("Pin `{name}`?")).is_ok() {
            servers.pin(&tool).await?;
            pinned.push(name);
        }
    }
    Ok(pinned)
}

fn pinned_output(pinned: &[String], waiting: usize) -> CommandOutput {
    let text = match (pinned.len(), waiting) {
        (_, 0) => "every tool is pinned".to_owned(),
        (count, waiting) => format!("{count} of {waiting} definitions were pinned"),
    };
    let json = Some(json!({ "pinned": pinned, "waiting": waiting - pinned.len() }).to_string());
    CommandOutput { text, json, ..CommandOutput::default() }
}
