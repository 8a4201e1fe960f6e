//! `principals list`, `principals show`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    record::{Record, ShowArgs, WithDeleted},
    surface::SURFACE,
    tenant,
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Principals {
    /// Lists principals, oldest first
    List(ListArgs<Filter>),
    /// Reads a principal
    Show(ShowArgs<WithDeleted>),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    /// Only principals of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only principals of this class: `agent`, `human`, …
    #[arg(long, value_name = "CLASS")]
    principal_class: Option<String>,
    /// Only principals in this state
    #[arg(long, value_parser = ["pending", "active", "suspended", "revoked"])]
    state: Option<String>,
    /// Only principals with this text in their id, display name or e-mail address
    #[arg(long, value_name = "TEXT")]
    q: Option<String>,
    /// Also show deleted principals
    #[arg(long)]
    deleted: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

const PRINCIPALS: [&str; 2] = [SURFACE, "principals"];

pub(super) const LIST: List = List {
    path: &PRINCIPALS,
    member: "principals",
    columns: &["id", "state", "display_name", "name", "principal_class", "tenant_id", "created_at"],
};

const RECORD: Record = Record { path: &PRINCIPALS, envelope: Some("principal") };

impl Principals {
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
