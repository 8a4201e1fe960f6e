//! `decisions`: look up, export, watch, fetch packs.

mod export;
mod filter;
mod packs;
mod show;
mod watch;

use authority_client::SURFACE;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    commands::decisions::filter::Which,
    connect::Connector,
    list::{List, ListArgs, Page},
    outcome::{CommandOutput, Failure},
    record::ShowArgs,
};

#[derive(Debug, Subcommand)]
pub enum Decisions {
    /// Finds decisions, newest first
    List(ListArgs<Filter>),
    /// Shows a decision and its reason, then the record, its signature and its outcome
    Show(ShowArgs),
    /// Writes the matching signed records as lines of JSON, oldest first
    Export(export::Export),
    /// Writes the evidence packs of an export's decisions as lines of JSON, in the same order
    Packs(packs::Packs),
    /// Follows a decision, or all decisions of a tenant, and reconnects if the connection breaks
    Watch(watch::Watch),
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    #[command(flatten)]
    #[serde(flatten)]
    which: Which,
    /// Only decisions on requests with this payee, account, document, recipient, target or amount,
    /// as `document:RE-2026-118`
    #[arg(long, value_name = "TEXT")]
    fact: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

pub(crate) const LIST: List = List {
    path: &[SURFACE, "decisions"],
    member: "decisions",
    columns: &["decision_id", "decision", "reason_code", "subject", "action", "evaluated_at"],
};

impl Decisions {
    pub(crate) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(ListArgs { mut filter, server }) => {
                let server = connector.connect(server).await?;
                filter.which.complete(&server).await?;
                LIST.page(&server, &filter).await
            }
            Self::Show(args) => show::run(args, connector).await,
            Self::Export(args) => args.run(connector).await,
            Self::Packs(args) => args.run(connector).await,
            Self::Watch(args) => args.run(connector).await,
        }
    }
}
