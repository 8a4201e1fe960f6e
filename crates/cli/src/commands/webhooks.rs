//! `webhooks`: endpoints and their deliveries, and commands for failed deliveries: test, redrive,
//! enable.
//!
//! The owner, a tenant's admins and its API keys have these operations on separate surfaces.

use authority_client::{SURFACE, Surface};
use authority_ids::{Delivery, DeliveryRef, Endpoint, EndpointRef, TenantRef};
use authority_webhook::retry::ErrorClass;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    arguments::{id, tenant},
    commands::webhook_replays::{Replay, ReplaysArgs},
    connect::{Connector, ServerArgs},
    list::{CountedPage, ID, List, ListArgs, Page},
    outcome::{CommandOutput, Failure},
    record::{self, Record, ShowArgs, WithDeleted},
    server::Server,
    text::plain,
};

/// Without a subcommand: `list`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Webhooks {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs<Filter>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists endpoints, oldest first, with their dead deliveries and their last failure
    List(ListArgs<Filter>),
    /// Reads an endpoint
    Show(ShowArgs<WithDeleted>),
    /// Lists an endpoint's deliveries, newest first
    Deliveries(DeliveriesArgs),
    /// Attempts dead deliveries again
    Redrive(Redrive),
    /// Sends a test event to an endpoint; fails unless it arrives
    Test(ShowArgs),
    /// Pauses an endpoint: events wait for it until it is enabled
    Pause(Pause),
    /// Enables a paused or disabled endpoint
    Enable(Enable),
    /// Sends past events to an endpoint again
    Replay(Replay),
    /// Lists an endpoint's replays, newest first
    Replays(ReplaysArgs),
}

#[derive(Debug, Args, Serialize)]
struct Filter {
    /// Only endpoints of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// Only endpoints in this state
    #[arg(long, value_parser = ["active", "paused", "disabled", "deleted"])]
    state: Option<String>,
    /// Also show deleted endpoints
    #[arg(long)]
    deleted: bool,
    /// Only endpoints that are disabled, or with deliveries that fail
    #[arg(long)]
    failing: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

#[derive(Debug, Args)]
struct DeliveriesArgs {
    /// The endpoint's id
    #[arg(value_parser = id::<Endpoint>)]
    endpoint: EndpointRef,
    #[command(flatten)]
    list: ListArgs<DeliveryFilter>,
}

#[derive(Debug, Args, Serialize)]
struct DeliveryFilter {
    /// Only deliveries in this state; `dead` deliveries can be redriven
    #[arg(long, value_parser = ["open", "delivered", "dead", "cancelled"])]
    state: Option<String>,
    /// Only deliveries of events of this type
    #[arg(long, value_name = "TYPE")]
    event_type: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

#[derive(Debug, Args)]
struct Redrive {
    /// The deliveries' ids
    #[arg(value_name = "DELIVERY", value_parser = id::<Delivery>, required_unless_present = "all_dead")]
    deliveries: Vec<DeliveryRef>,
    /// All dead deliveries of this endpoint
    #[arg(long, value_name = "ENDPOINT", value_parser = id::<Endpoint>, conflicts_with = "deliveries")]
    all_dead: Option<EndpointRef>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
struct Pause {
    /// The endpoint's id
    #[arg(value_parser = id::<Endpoint>)]
    endpoint: EndpointRef,
    /// The reason, for people
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
struct Enable {
    /// The endpoint's id
    #[arg(value_parser = id::<Endpoint>)]
    endpoint: EndpointRef,
    /// The first event to deliver: the first undelivered event, or the next event
    #[arg(long, value_parser = ["stopped", "now"], default_value = "stopped")]
    from: String,
    #[command(flatten)]
    server: ServerArgs,
}

const ENDPOINTS: [&str; 2] = [SURFACE, "webhook-endpoints"];

pub(super) const LIST: List = List {
    path: &ENDPOINTS,
    member: "webhook_endpoints",
    columns: &["id", "state", "state_reason", "held_by", "held_until", "url"],
};

const RECORD: Record = Record { path: &ENDPOINTS, envelope: Some("webhook_endpoint") };

pub(super) const DELIVERIES: List = List {
    path: &[SURFACE, "webhook-endpoints", ID, "deliveries"],
    member: "deliveries",
    columns: &["id", "state", "event_type", "sequence", "attempts", "due_at"],
};

impl Webhooks {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self.command.unwrap_or(Command::List(self.list)) {
            Command::List(args) => list(args, connector).await,
            Command::Show(args) => RECORD.show(args, connector).await,
            Command::Deliveries(args) => deliveries(args, connector).await,
            Command::Redrive(args) => redrive(args, connector).await,
            Command::Test(args) => test(args, connector).await,
            Command::Pause(args) => pause(args, connector).await,
            Command::Enable(args) => enable(args, connector).await,
            Command::Replay(args) => args.run(connector).await,
            Command::Replays(args) => args.run(connector).await,
        }
    }
}

async fn list(
    ListArgs { filter, server }: ListArgs<Filter>,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let mut found = LIST.find(&server, "", &filter).await?;
    for endpoint in &mut found.records {
        failures(&server, endpoint).await?;
    }
    let mut columns = [LIST.columns, &[DEAD, LAST_FAILURE]].concat();
    // Other callers see the endpoints of only one tenant.
    if server.opens(Surface::Owner) {
        columns.insert(1, "tenant_id");
    }
    Ok(found.shown("webhook endpoints", &columns))
}

/// Columns that the records do not contain.
const DEAD: &str = "dead";
const LAST_FAILURE: &str = "last_failure";

fn set(record: &mut Value, member: &str, value: Value) {
    if let Some(members) = record.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// Adds data that the record does not contain: the number of dead deliveries on one page, and the
/// last failed attempt.
async fn failures(server: &Server, endpoint: &mut Value) -> Result<(), Failure> {
    let id = endpoint["id"].as_str().unwrap_or_default().to_owned();
    let in_state = async |state| DELIVERIES.find(server, &id, &json!({"state": state})).await;
    let (dead, open) = (in_state(DEAD).await?, in_state("open").await?);
    let more = if dead.next().is_some() { "+" } else { "" };
    let dead_count = format!("{}{more}", dead.records.len());
    let attempts = dead.records.iter().chain(&open.records).filter_map(last_failure);
    // All times have the same format, in which texts sort like times.
    let last = attempts.max_by_key(|attempt| attempt["at"].as_str());
    set(endpoint, LAST_FAILURE, last.map(described).into());
    set(endpoint, DEAD, dead_count.into());
    Ok(())
}

fn last_failure(delivery: &Value) -> Option<&Value> {
    let mut attempts = delivery["attempts"].as_array()?.iter().rev();
    attempts.find(|attempt| attempt["error_class"].is_string())
}

/// A failed attempt: its time and its cause.
fn described(attempt: &Value) -> String {
    let text = |member: &str| attempt[member].as_str().unwrap_or_default();
    let at = text("at").split('.').next().unwrap_or_default().trim_end_matches('Z');
    let class = text("error_class");
    let why = match (attempt["status"].as_u64(), ErrorClass::named(class)) {
        (Some(status), _) => format!(" {status}"),
        (None, Some(class)) => format!(": {class}"),
        (None, None) => String::new(),
    };
    format!("{at}Z {}{why}", plain(class))
}

async fn deliveries(
    DeliveriesArgs { endpoint, list: ListArgs { filter, server } }: DeliveriesArgs,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let mut found = DELIVERIES.find(&server, &endpoint, &filter).await?;
    for delivery in &mut found.records {
        let last = last_failure(delivery).map(described);
        let count = delivery["attempts"].as_array().map(Vec::len);
        set(delivery, LAST_FAILURE, last.into());
        set(delivery, "attempts", count.into());
    }
    let columns = [DELIVERIES.columns, &[LAST_FAILURE]].concat();
    Ok(found.shown(DELIVERIES.member, &columns))
}

async fn redrive(
    Redrive { deliveries, all_dead, server }: Redrive,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let mut redriven = Vec::new();
    match all_dead {
        None => redrive_each(&server, deliveries, &mut redriven).await?,
        Some(endpoint) => {
            let mut page = json!({"state": DEAD});
            loop {
                let found = DELIVERIES.find(&server, &endpoint, &page).await?;
                let ids = found.records.iter().filter_map(|dead| dead["id"].as_str());
                let ids = ids.map(DeliveryRef::from).collect();
                redrive_each(&server, ids, &mut redriven).await?;
                let Some(next) = found.next() else { break };
                page["page_token"] = next.into();
            }
        }
    }
    let mut output = CommandOutput::list("redriven", &redriven);
    if redriven.is_empty() {
        "no dead deliveries to redrive".clone_into(&mut output.aside);
    }
    Ok(output)
}

/// Redrives deliveries one after another, up to the first refusal. The failure reports the earlier
/// successes.
async fn redrive_each(
    server: &Server,
    ids: Vec<DeliveryRef>,
    redriven: &mut Vec<String>,
) -> Result<(), Failure> {
    for id in ids {
        if let Err(failure) =
            call(server, &[SURFACE, "deliveries"], &id, "redrive", &json!({})).await
        {
            return Err(
                failure.with(&format!("{id} was not redriven; {} before it were", redriven.len()))
            );
        }
        redriven.push(id.into());
    }
    Ok(())
}

async fn test(
    ShowArgs { id, server, .. }: ShowArgs,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let body = call(&server, &ENDPOINTS, &id, "test", &json!({})).await?;
    let mut result = server.json(&body)?;
    if let Some(members) = result.as_object_mut() {
        members.shift_remove("ok");
    }
    let text = record::text(&result, server.view());
    if result["delivered"] != true {
        let failure = Failure::new(text.trim_end());
        let class = result["error_class"].as_str().and_then(ErrorClass::named);
        return Err(match class.filter(|_| result["status"].is_null()) {
            Some(class) => failure.with(&format!("not delivered: {class}")),
            None => failure,
        });
    }
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}

async fn pause(
    Pause { endpoint, reason, server }: Pause,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let body = call(&server, &ENDPOINTS, &endpoint, "pause", &json!({"reason": reason})).await?;
    RECORD.shown(&server, body)
}

async fn enable(
    Enable { endpoint, from, server }: Enable,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let body = call(&server, &ENDPOINTS, &endpoint, "enable", &json!({"from": from})).await?;
    RECORD.shown(&server, body)
}

/// Calls an operation on a record.
async fn call(
    server: &Server,
    path: &[&str],
    id: &str,
    operation: &str,
    body: &Value,
) -> Result<String, Failure> {
    let last = format!("{id}:{operation}");
    server.post(&[server.path(path), vec![&last]].concat(), body).await
}
