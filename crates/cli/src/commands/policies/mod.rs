//! `policies`: look up, check, compare, see the impact, observe, activate.

mod impact;
mod observe;
mod text;

use authority_ids::TenantRef;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    arguments::tenant,
    commands::policies::text::POLICIES,
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    outcome::{CommandOutput, Failure},
    record::{Record, ShowArgs},
};

#[derive(Debug, Subcommand)]
pub enum Policies {
    /// Lists policies, oldest first
    List(ListArgs<Filter>),
    /// Reads a policy
    Show(ShowArgs),
    /// Checks a policy text without storing it
    Validate(text::Validate),
    /// Compares the draft, or a file, with the active text
    Diff(text::Diff),
    /// Lists recent decisions that would change
    Impact(impact::Impact),
    /// Lets a version observe: it is evaluated and counted, and changes no decision
    Observe(observe::Observe),
    /// Ends the observation of a policy
    Unobserve(observe::Unobserve),
    /// Activates a version after showing the changes
    Activate(text::Activate),
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    /// Only policies of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
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

pub(crate) const LIST: List = List {
    path: &POLICIES,
    member: "policies",
    columns: &[
        "id",
        "state",
        "name",
        "regime",
        "version",
        "observing_version",
        "tenant_id",
        "created_at",
    ],
};

const RECORD: Record = Record { path: &POLICIES, envelope: Some("policy") };

impl Policies {
    pub(crate) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => RECORD.show(args, connector).await,
            Self::Validate(args) => args.run(connector).await,
            Self::Diff(args) => args.run(connector).await,
            Self::Impact(args) => args.run(connector).await,
            Self::Observe(args) => args.run(connector).await,
            Self::Unobserve(args) => args.run(connector).await,
            Self::Activate(args) => args.run(connector).await,
        }
    }
}
