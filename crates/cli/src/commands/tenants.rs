//! `tenants list`, `tenants show`.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    outcome::{CommandOutput, Failure},
    record::{Record, ShowArgs, WithDeleted},
    tenant::TENANTS,
};

#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// Lists tenants, oldest first
    List(ListArgs<Filter>),
    /// Reads a tenant, by its id or its slug
    Show(ShowArgs<WithDeleted>),
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    /// Only tenants in this state; active tenants by default
    #[arg(long, value_parser = ["provisioning", "active", "suspended", "deleted"])]
    state: Option<String>,
    /// Also show deleted tenants
    #[arg(long)]
    deleted: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

pub(super) const LIST: List = List {
    path: &TENANTS,
    member: "tenants",
    columns: &["id", "state", "slug", "name", "env", "contract_status", "created_at"],
};

const RECORD: Record = Record { path: &TENANTS, envelope: Some("tenant") };

impl Tenants {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => RECORD.show(args, connector).await,
        }
    }
}
