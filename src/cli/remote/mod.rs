//! The commands that call a running service: `tenants list`, `decisions show`, ….
//!
//! Each group of commands has a file with its arguments, its requests and the output for the
//! responses. Shared code has its own files: `connect.rs` finds the service, `server.rs` calls it
//! at the paths of the credential (`surface.rs`), `list.rs` and `record.rs` show the responses.

mod approvals;
mod cells;
mod connect;
mod decisions;
mod delegations;
mod files;
mod keys;
mod known;
mod list;
mod login;
mod may;
mod names;
mod narrow;
mod place;
mod policies;
mod principals;
mod record;
mod refusal;
mod seal;
mod server;
mod simulate;
mod snapshot;
mod stop;
mod stream;
mod surface;
mod table;
mod tenants;
#[cfg(test)]
mod tests;
mod times;
mod webhook_replays;
mod webhooks;

use clap::{
    Subcommand,
    builder::{StringValueParser, TypedValueParser},
};

use super::{Actions, Failure, args::tenant_id, outcome::CommandOutput, text};
pub(super) use connect::{Connector, ServerArgs};
pub(super) use keys::Keys;
pub(super) use login::{LoginArgs, LogoutArgs};
pub(super) use refusal::ApiError;

#[derive(Debug, Subcommand)]
pub(super) enum Remote {
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
            Self::Approvals(command) => command.run(connector).await,
            Self::Tenants(command) => command.run(connector).await,
            Self::Principals(command) => command.run(connector).await,
            Self::Delegations(command) => command.run(connector).await,
            Self::Policies(command) => command.run(connector).await,
            Self::Decisions(command) => command.run(connector).await,
            Self::Seal(command) => command.run(connector).await,
            Self::Simulate(command) => command.run(connector).await,
            Self::Stop(command) => command.run(connector).await,
            Self::Quarantine(command) => command.run(connector).await,
            Self::Release(command) => command.run(connector).await,
            Self::StopSignals(command) => command.run(connector).await,
            Self::Quarantines(command) => command.run(connector).await,
            Self::Snapshot(command) => command.run(connector).await,
            Self::Webhooks(command) => command.run(connector).await,
        }
    }
}

/// Parses an id, which becomes a segment of a path. An empty id, or an id of dots, would change the
/// path.
fn segment(text: &str) -> Result<String, &'static str> {
    match text {
        "" | "." | ".." => Err("is not an id"),
        text => Ok(text.to_owned()),
    }
}

/// Parses an action for an exact match in a list: a pattern would match no action.
fn exact_action(text: &str) -> Result<String, &'static str> {
    if text.contains('*') {
        return Err(
            "must be the exact action, such as payment.execute: lists have no filter by pattern",
        );
    }
    Ok(text.to_owned())
}

/// Parses a tenant's id or slug.
pub(super) fn tenant() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text| tenant_id(&text))
}
