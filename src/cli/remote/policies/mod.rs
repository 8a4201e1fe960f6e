//! `policies`: look up, check, compare, see the impact, activate.

mod impact;
mod text;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    record::{Record, ShowArgs},
    surface::SURFACE,
    tenant,
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Policies {
    /// Lists policies, oldest first
    List(ListArgs<Filter>),
    /// Reads a policy
    Show(ShowArgs),
    /// Checks a policy text without storing it; only for the installation's owner
    Validate(text::Validate),
    /// Compares the draft, or a file, with the active text
    Diff(text::Diff),
    /// Lists recent decisions that would change
    Impact(impact::Impact),
    /// Activates a version after showing the changes; only for the installation's owner
    Activate(text::Activate),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    /// Only policies of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only policies of this regime
    #[arg(long)]
    regime: Option<String>,
    /// Only policies in this state
    #[arg(long, value_parser = ["draft", "active", "retired"])]
    state: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

const POLICIES: [&str; 2] = [SURFACE, "policies"];

pub(in crate::cli::remote) const LIST: List = List {
    path: &POLICIES,
    member: "policies",
    columns: &["id", "state", "name", "regime", "version", "tenant_id", "created_at"],
};

const RECORD: Record = Record { path: &POLICIES, envelope: Some("policy") };

impl Policies {
    pub(in crate::cli::remote) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => RECORD.show(args, connector).await,
            Self::Validate(args) => args.run(connector).await,
            Self::Diff(args) => args.run(connector).await,
            Self::Impact(args) => args.run(connector).await,
            Self::Activate(args) => args.run(connector).await,
        }
    }
}
