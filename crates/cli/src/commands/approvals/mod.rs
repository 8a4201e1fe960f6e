//! `approvals`: pending requests, their full content, and the decisions on them.

mod act;
mod links;
mod request;
mod show;

use authority_ids::TenantRef;
use clap::{Args, Subcommand};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    actor::resolve,
    arguments::{exact_action, tenant},
    cells::until,
    commands::approvals::request::{APPROVALS, about, progress, read, what},
    connect::Connector,
    list::{CountedPage, List, ListArgs},
    names::Names,
    outcome::{CommandOutput, Failure},
    record::ShowArgs,
    text,
    times::moment,
    view::View,
};

/// Without a subcommand: `list`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Approvals {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs<Filter>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists requests for approval; pending requests without --state
    List(ListArgs<Filter>),
    /// Shows a request: its full content, why it was held, and the decision it would get now
    Show(ShowArgs),
    /// Approves exactly the displayed request
    Approve(act::Approve),
    /// Declines a request; a single decline ends it
    Decline(act::Decline),
    /// Withdraws an approved request that is not used yet
    Withdraw(act::Withdraw),
    /// Reverts a decline: the agent may send the request again
    Reopen(act::Reopen),
}

#[derive(Debug, Args, Serialize)]
struct Filter {
    /// Only requests of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// Only requests in this state
    #[arg(long, default_value = "pending",
          value_parser = ["pending", "approved", "used", "declined", "expired", "void", ANY])]
    #[serde(serialize_with = "unless_any")]
    state: String,
    /// Only requests of this agent, by name or id
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only requests for exactly this action
    #[arg(long, value_name = "ACTION", value_parser = exact_action)]
    action: Option<String>,
    /// By the time of opening, by expiry (pending or approved requests), or by amount (pending
    /// requests) [default: expiry for pending requests, otherwise newest]
    #[arg(long, value_parser = ["oldest", "newest", "expiry", "amount"])]
    order: Option<String>,
    /// Only requests that expire after this time: RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    expires_after: Option<String>,
    /// Only pending requests that you may decide now
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    for_me: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

/// No filter by state.
pub const ANY: &str = "any";

fn unless_any<S: Serializer>(state: &str, to: S) -> Result<S::Ok, S::Error> {
    if state == ANY { to.serialize_none() } else { to.serialize_str(state) }
}

pub const LIST: List = List {
    path: &APPROVALS,
    member: "approvals",
    columns: &["id", "state", "subject", "action", "reason_code", "given", "expires_at"],
};

/// The requests of the calling API key.
pub(super) const ASKED: List = List {
    path: &["v1", "approvals"],
    member: "approvals",
    columns: &["id", "state", "action", "expires_at"],
};

/// The agent, the action, the payee and purpose, the reason, the approvals and the expiry.
const COLUMNS: [&str; 8] = ["id", "state", "who", "what", "about", "why", "approvals", "until"];

impl Approvals {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self.command.unwrap_or(Command::List(self.list)) {
            Command::List(args) => list(args, connector).await,
            Command::Show(args) => show(args, connector).await,
            Command::Approve(args) => args.run(connector).await,
            Command::Decline(args) => args.run(connector).await,
            Command::Withdraw(args) => args.run(connector).await,
            Command::Reopen(args) => args.run(connector).await,
        }
    }
}

async fn list(
    ListArgs { mut filter, server }: ListArgs<Filter>,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    if server.has_api_key() {
        return ASKED.page(&server, &filter).await;
    }
    let first = if filter.state == "pending" { "expiry" } else { "newest" };
    filter.order.get_or_insert_with(|| first.to_owned());
    resolve(&server, &mut filter.subject).await?;
    let mut found = LIST.find(&server, "", &filter).await?;
    let names =
        Names::of(&server, found.records.iter().map(|held| text::of(held, "subject"))).await;
    for held in &mut found.records {
        *held = row(held, &names, server.view());
    }
    let pending = if filter.state == ANY {
        "approvals".to_owned()
    } else {
        format!("{} approvals", filter.state)
    };
    Ok(found.shown(&pending, &COLUMNS))
}

fn row(held: &Value, names: &Names, view: View) -> Value {
    serde_json::json!({
        "id": held["id"],
        "state": held["state"],
        "who": names.cell(text::of(held, "subject")),
        "what": what(held),
        "about": about(held),
        "why": held["reason_code"],
        "approvals": progress(held),
        "until": until(text::of(held, "expires_at"), view),
    })
}

async fn show(
    ShowArgs { id, server, .. }: ShowArgs,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let (body, held) = read(&server, &id.into()).await?;
    // A script gets only the body.
    let text = if server.view().json { String::new() } else { show::text(&server, &held).await };
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}
