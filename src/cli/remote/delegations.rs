//! `delegations list`, `delegations show`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    record::{Record, ShowArgs},
    tenant,
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Delegations {
    /// Lists delegations, oldest first
    List(ListArgs<Filter>),
    /// Reads a delegation
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    /// Only those of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only those that this principal gave
    #[arg(long, value_name = "ID")]
    delegator_id: Option<String>,
    /// Only those that this principal holds
    #[arg(long, value_name = "ID")]
    delegate_id: Option<String>,
    /// Only those directly below this delegation
    #[arg(long, value_name = "ID")]
    parent_id: Option<String>,
    /// Only those in the chains of this first delegation
    #[arg(long, value_name = "ID")]
    root_id: Option<String>,
    /// Only those in this state
    #[arg(long, value_parser = ["active", "suspended", "revoked"])]
    state: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

pub(super) const LIST: List = List {
    path: &["api", "v1", "delegations"],
    member: "delegations",
    columns: &["id", "state", "delegator_id", "delegate_id", "actions", "purposes", "created_at"],
};

const RECORD: Record = Record { path: &["api", "v1", "delegations"], envelope: Some("delegation") };

impl Delegations {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => RECORD.show(args, connector).await,
        }
    }
}
