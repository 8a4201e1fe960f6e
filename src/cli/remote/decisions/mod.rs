//! `decisions`: look up, export, watch.

mod export;
mod show;
mod watch;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connect::Connector,
    list::{List, ListArgs, Page},
    record::ShowArgs,
    stop::resolve,
    surface::SURFACE,
    tenant,
    times::moment,
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Decisions {
    /// Finds decisions, newest first
    List(ListArgs<Filter>),
    /// Says what was decided and why, then shows the record, its signature and its outcome
    Show(ShowArgs),
    /// Writes the signed records that match as lines of JSON, oldest first
    Export(export::Export),
    /// Follows a decision, or all of a tenant as they come, and connects again when it breaks
    Watch(watch::Watch),
}

#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Filter {
    #[command(flatten)]
    #[serde(flatten)]
    which: Which,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

/// Which decisions.
#[derive(Debug, Args, Serialize)]
struct Which {
    /// Only those of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only those asked for this principal: an agent's name, or an id
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
    /// Only those at or after this time: of RFC 3339, or a span before now, such as 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    since: Option<String>,
    /// Only those before this time, in the same forms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    until: Option<String>,
}

pub(in crate::cli::remote) const LIST: List = List {
    path: &[SURFACE, "decisions"],
    member: "decisions",
    columns: &["decision_id", "decision", "reason_code", "subject", "action", "evaluated_at"],
};

impl Decisions {
    pub(in crate::cli::remote) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(ListArgs { mut filter, server }) => {
                let server = connector.connect(server).await?;
                resolve(&server, &mut filter.which.subject).await?;
                LIST.page(&server, &filter).await
            }
            Self::Show(args) => show::run(args, connector).await,
            Self::Export(args) => args.run(connector).await,
            Self::Watch(args) => args.run(connector).await,
        }
    }
}
