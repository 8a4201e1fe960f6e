//! The commands that call a running service: `tenants list`, `decisions show`, ….
//!
//! A file for each group of them: its arguments, its requests and what is shown of the responses. What they
//! share is beside them: `connect.rs` finds the service, `server.rs` calls it, at the paths that the credential
//! opens (`surface.rs`), `list.rs` and `record.rs` show what it returns.

mod connect;
mod decisions;
mod delegations;
mod keys;
mod list;
mod policies;
mod principals;
mod record;
mod server;
mod snapshot;
mod surface;
mod table;
mod tenants;
#[cfg(test)]
mod tests;
mod webhook_replays;
mod webhooks;

use clap::{
    Subcommand,
    builder::{StringValueParser, TypedValueParser},
};

use super::{Actions, Failure, args::tenant_id, outcome::CommandOutput, text};
pub(super) use connect::Connector;
pub(super) use keys::Keys;
pub(super) use server::{ApiError, deepest, is_loopback};

#[derive(Debug, Subcommand)]
pub(super) enum Remote {
    /// Look up tenants
    #[command(subcommand)]
    Tenants(tenants::Tenants),
    /// Look up principals: agents, people, organisations
    #[command(subcommand)]
    Principals(principals::Principals),
    /// Look up delegations
    #[command(subcommand)]
    Delegations(delegations::Delegations),
    /// Look up policies
    #[command(subcommand)]
    Policies(policies::Policies),
    /// Look up decisions
    #[command(subcommand)]
    Decisions(decisions::Decisions),
    /// Bring observations of anchors
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    /// Look up webhook endpoints and their deliveries, test them, deliver again: as the owner, as a tenant's
    /// admin, or with an API key that has `webhooks:write`
    Webhooks(webhooks::Webhooks),
}

impl Remote {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        match self {
            Self::Tenants(command) => command.run(connector).await,
            Self::Principals(command) => command.run(connector).await,
            Self::Delegations(command) => command.run(connector).await,
            Self::Policies(command) => command.run(connector).await,
            Self::Decisions(command) => command.run(connector).await,
            Self::Snapshot(command) => command.run(connector).await,
            Self::Webhooks(command) => command.run(connector).await,
        }
    }
}

/// Parses an id, which becomes a segment of a path: an empty one, or one of dots, would change the path.
fn segment(text: &str) -> Result<String, &'static str> {
    match text {
        "" | "." | ".." => Err("is not an id"),
        text => Ok(text.to_owned()),
    }
}

/// Parses a tenant's id or slug.
pub(super) fn tenant() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text| tenant_id(&text))
}
