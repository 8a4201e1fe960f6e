//! The commands that call a running service: `tenants list`, `decisions show`, ….
//!
//! Each group of commands has a file with its arguments, its requests and the output for the
//! responses.

mod approvals;
pub(crate) mod archive;
mod decisions;
mod delegations;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod keys;
pub(crate) mod login;
mod mcp;
mod policies;
mod principals;
mod seal;
mod search;
mod simulate;
mod snapshot;
mod stop;
mod tenants;
pub(crate) mod verify;
mod webhook_replays;
mod webhooks;

use clap::Subcommand;
use tokio::runtime::Runtime;

pub use approvals::{ANY, LIST as APPROVALS};

use crate::{
    connect::Connector,
    list::List,
    outcome::{CommandOutput, Failure},
    runtime::{relaying, runtime},
};

/// Every list that a command shows.
pub const LISTS: [List; 13] = [
    stop::LIST,
    stop::QUARANTINES,
    approvals::LIST,
    approvals::ASKED,
    tenants::LIST,
    principals::LIST,
    delegations::LIST,
    policies::LIST,
    decisions::LIST,
    keys::LIST,
    webhooks::LIST,
    webhooks::DELIVERIES,
    webhook_replays::REPLAYS,
];

#[derive(Debug, Subcommand)]
pub enum Remote {
    /// List, show and decide requests for approval
    Approvals(approvals::Approvals),
    /// Look up tenants
    #[command(subcommand)]
    Tenants(tenants::Tenants),
    /// Look up principals: agents, people, organisations
    #[command(subcommand)]
    Principals(principals::Principals),
    /// Look up delegations, renew and revoke them
    #[command(subcommand)]
    Delegations(delegations::Delegations),
    /// Look up policies, check them, see their impact, activate them
    #[command(subcommand)]
    Policies(policies::Policies),
    /// Look up decisions, export them, watch them
    #[command(subcommand)]
    Decisions(decisions::Decisions),
    /// Find decisions, approval requests, principals and records by id, name, or a fact of a request
    Search(search::Search),
    /// Put a decision's record into its tenant's log, and fetch its bundle
    Seal(seal::Seal),
    /// Decide with other facts or policies, without recording
    Simulate(simulate::Simulate),
    /// Stop an agent and all agents under it at once
    Stop(stop::Stop),
    /// Suspend a part of a tenant's authority
    Quarantine(stop::Quarantine),
    /// End a stop signal or a quarantine
    Release(stop::Release),
    /// Look up stop signals
    #[command(subcommand)]
    StopSignals(stop::StopSignals),
    /// Look up quarantines
    #[command(subcommand)]
    Quarantines(stop::Quarantines),
    /// Submit observations of anchors
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    /// Guard MCP servers: relay one with decisions, pin its tools, grant it to an agent
    #[command(subcommand)]
    Mcp(mcp::Mcp),
    /// Look up webhook endpoints and their deliveries, test them, deliver again: as the owner, as a tenant's
    /// admin, or with an API key that has `webhooks:write`
    Webhooks(webhooks::Webhooks),
}

impl Remote {
    /// Starts the runtime of this command.
    ///
    /// # Errors
    /// The system has no thread or memory left.
    pub fn runtime(&self) -> Result<Runtime, Failure> {
        match self {
            Self::Mcp(mcp::Mcp::Wrap(_)) => relaying(),
            _ => runtime(),
        }
    }

    pub async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::Approvals(command) => command.run(connector).await,
            Self::Tenants(command) => command.run(connector).await,
            Self::Principals(command) => command.run(connector).await,
            Self::Delegations(command) => command.run(connector).await,
            Self::Policies(command) => command.run(connector).await,
            Self::Decisions(command) => command.run(connector).await,
            Self::Search(command) => command.run(connector).await,
            Self::Seal(command) => command.run(connector).await,
            Self::Simulate(command) => command.run(connector).await,
            Self::Stop(command) => command.run(connector).await,
            Self::Quarantine(command) => command.run(connector).await,
            Self::Release(command) => command.run(connector).await,
            Self::StopSignals(command) => command.run(connector).await,
            Self::Quarantines(command) => command.run(connector).await,
            Self::Snapshot(command) => command.run(connector).await,
            Self::Mcp(command) => command.run(connector).await,
            Self::Webhooks(command) => command.run(connector).await,
        }
    }
}
