//! `tenants list`, `tenants show`.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::{
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    record::{Record, ShowArgs, WithDeleted},
    server::Server,
    stop::tenant_of,
    surface::Surface,
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
    path: &["api", "v1", "tenants"],
    member: "tenants",
    columns: &["id", "state", "slug", "name", "env", "contract_status", "created_at"],
};

const RECORD: Record = Record { path: &["api", "v1", "tenants"], envelope: Some("tenant") };

/// Returns the tenant of the owner's command if it need not be given: the tenant in an id of the
/// command, or the only tenant.
pub(super) async fn meant(server: &Server, id: Option<&str>) -> Option<String> {
    if !server.opens(Surface::Owner) {
        return None;
    }
    if let Some(tenant) = id.and_then(|id| tenant_of(server, id)) {
        return Some(tenant);
    }
    let found = server.get(LIST.path, &json!({"limit": 2})).await.ok()?;
    match server.json(&found).ok()?[LIST.member].as_array()?.as_slice() {
        [tenant] => tenant["id"].as_str().map(str::to_owned),
        _ => None,
    }
}

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
