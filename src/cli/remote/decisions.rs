//! `decisions list`, `decisions show`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connect::Connector,
    list::{List, ListArgs, Page},
    record::{Record, ShowArgs},
    tenant,
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Decisions {
    /// Finds decisions, newest first
    List(ListArgs<Filter>),
    /// Reads a decision's record, its signature and its outcome
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    /// Only those of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only those asked for this principal
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only those on this action
    #[arg(long)]
    action: Option<String>,
    /// Only those with this decision; `allow` also finds those permitted with constraints
    #[arg(long, value_parser = ["allow", "allow_with_constraints", "require_approval", "deny"])]
    decision: Option<String>,
    /// Only those with this decisive reason code
    #[arg(long, value_name = "CODE")]
    reason_code: Option<String>,
    /// Only those at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

pub(super) const LIST: List = List {
    path: &["api", "v1", "decisions"],
    member: "decisions",
    columns: &["decision_id", "decision", "reason_code", "subject", "action", "evaluated_at"],
};

const RECORD: Record = Record { path: &["v1", "decisions"], envelope: None };

impl Decisions {
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
