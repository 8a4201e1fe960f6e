//! A request to the development provider for a token.

use clap::Subcommand;

/// The holder of the token.
#[derive(Debug, Subcommand)]
pub enum TokenRequest {
    /// The owner of the service
    Owner {
        #[arg(long)]
        email: Option<String>,
    },
    /// A member of a tenant
    Tenant {
        /// The tenant's slug
        #[arg(long)]
        tenant: String,
        /// Their role
        #[arg(long, value_parser = ["admin", "approver", "legal", "member", "viewer", "auditor"])]
        role: String,
        /// Defaults to `<role>@<tenant>.example`
        #[arg(long)]
        email: Option<String>,
    },
}
