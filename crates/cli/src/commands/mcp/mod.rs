//! `mcp`: guards MCP servers. `wrap` relays a server; the other commands manage its tools and grants.

mod add;
mod api;
mod definitions;
mod doctor;
mod list;
mod pin;
mod upstream;
mod wrap;

use clap::Subcommand;

use crate::{
    connect::Connector,
    outcome::{CommandOutput, Failure},
};

#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Relays an MCP server over standard input and output, with a decision on each call
    Wrap(Box<wrap::Wrap>),
    /// Registers an MCP server, pins its tools, grants it to an agent and prints the agent's configuration
    Add(Box<add::Add>),
    /// Shows definitions of tools that are not pinned, and pins them
    Pin(Box<pin::Pin>),
    /// Lists MCP servers, or the tools of one
    List(Box<list::List>),
    /// Finds unpinned, changed and ungranted tools, and compares the running server with its pins
    Doctor(Box<doctor::Doctor>),
}

impl Mcp {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::Wrap(command) => command.run(connector).await,
            Self::Add(command) => command.run(connector).await,
            Self::Pin(command) => command.run(connector).await,
            Self::List(command) => command.run(connector).await,
            Self::Doctor(command) => command.run(connector).await,
        }
    }
}
