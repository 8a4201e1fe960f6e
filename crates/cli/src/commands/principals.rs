//! `principals list`, `principals show`.

use authority_client::SURFACE;
use authority_ids::TenantRef;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    arguments::tenant,
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    outcome::{CommandOutput, Failure},
    record::{Record, ShowArgs, WithDeleted},
};

#[derive(Debug, Subcommand)]
pub enum Principals {
    /// Lists principals, oldest first
    List(ListArgs<Filter>),
    /// Reads a principal
    Show(ShowArgs<WithDeleted>),
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    /// Only principals of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
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
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => RECORD.show(args, connector).await,
        }
    }
}
