//! `policies list`, `policies show`.

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
pub(in crate::cli) enum Policies {
    /// Lists policies, oldest first
    List(ListArgs<Filter>),
    /// Reads a policy
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    /// Only those of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only those of this regime
    #[arg(long)]
    regime: Option<String>,
    /// Only those in this state
    #[arg(long, value_parser = ["draft", "active", "retired"])]
    state: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

pub(super) const LIST: List = List {
    path: &["api", "v1", "policies"],
    member: "policies",
    columns: &["id", "state", "name", "regime", "version", "tenant_id", "created_at"],
};

const RECORD: Record = Record { path: &["api", "v1", "policies"], envelope: Some("policy") };

impl Policies {
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
