//! `webhooks replay`: sends past events again. `webhooks replays`: shows the progress.

use authority_client::SURFACE;
use authority_ids::{Endpoint, EndpointRef, RecordRef};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::{
    arguments::id,
    connect::{Connector, ServerArgs},
    list::{ID, List, ListArgs, Page},
    outcome::{CommandOutput, Failure},
    record::Record,
    times::moment,
};

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The endpoint's id
    #[arg(value_parser = id::<Endpoint>)]
    endpoint: EndpointRef,
    /// The start: a time of RFC 3339, or a span before now, such as 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    since: String,
    /// The end, in the same forms [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    until: Option<String>,
    /// Only events of this type, or pattern of types; repeat it [default: all that the endpoint takes]
    #[arg(long = "event-type", value_name = "TYPE")]
    event_types: Vec<String>,
    /// The events to replay: dead deliveries, deliveries that never arrived and will not be sent,
    /// or all
    #[arg(long, value_parser = ["dead", "undelivered", "all"], default_value = "undelivered")]
    only: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplaysArgs {
    /// The endpoint's id
    #[arg(value_parser = id::<Endpoint>)]
    endpoint: EndpointRef,
    /// Only this replay, with the counts of its deliveries
    #[arg(value_parser = id::<authority_ids::Record>)]
    replay: Option<RecordRef>,
    #[command(flatten)]
    list: ListArgs<ReplayFilter>,
}

#[derive(Debug, Args, Serialize)]
struct ReplayFilter {
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

pub(super) const REPLAYS: List = List {
    path: &[SURFACE, "webhook-endpoints", ID, "replays"],
    member: "replays",
    columns: &[
        "id",
        "state",
        "only",
        "judged_sequence",
        "last_sequence",
        "deliveries",
        "created_at",
    ],
};

const REPLAY: Record = Record { path: &[SURFACE, "webhook-endpoints"], envelope: Some("replay") };

impl Replay {
    /// Prints the replay's id.
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        let last = format!("{}:replay", self.endpoint);
        let path = [server.path(&[SURFACE, "webhook-endpoints"]), vec![&last]].concat();
        let body = json!({"since": self.since, "until": self.until,
                          "event_types": self.event_types, "only": self.only});
        let answer = server.json(&server.post(&path, &body).await?)?;
        let id = answer["replay_id"].as_str().map(str::to_owned);
        Ok(CommandOutput::named("replay_id", id.unwrap_or_default()))
    }
}

impl ReplaysArgs {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let ListArgs { filter, server } = self.list;
        let server = connector.connect(server).await?;
        if let Some(replay) = &self.replay {
            let path = [self.endpoint.as_str(), "replays", replay];
            let path = [server.path(REPLAY.path), path.into()].concat();
            return REPLAY.shown(&server, server.get(&path, &()).await?);
        }
        let found = REPLAYS.find(&server, &self.endpoint, &filter).await?;
        Ok(found.shown(REPLAYS.member, REPLAYS.columns))
    }
}
