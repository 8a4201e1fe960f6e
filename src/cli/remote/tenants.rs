//! `tenants list`, `tenants show`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    record::{Record, ShowArgs, WithDeleted},
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Tenants {
    /// Lists tenants, oldest first
    List(ListArgs<Filter>),
    /// Reads a tenant, by its id or its slug
    Show(ShowArgs<WithDeleted>),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    /// Only those in this state; the active ones when left out
    #[arg(long, value_parser = ["provisioning", "active", "suspended", "deleted"])]
    state: Option<String>,
    /// Whether to show deleted ones too
    #[arg(long)]
    deleted: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

pub(super) const LIST: List = List {
    path: &["api", "v1", "tenants"],
    member: "tenants",
    columns: &["id", "state", "slug", "name", "env", "contract_status", "created_at"],
};

const RECORD: Record = Record { path: &["api", "v1", "tenants"], envelope: Some("tenant") };

impl Tenants {
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
