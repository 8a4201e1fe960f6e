//! `stop`, `quarantine` and `release`: show the impact, and require a confirmation.

mod quarantine;
mod suspension;

use authority_client::SURFACE;
use authority_ids::{IdParts, TenantRef};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::{
    actor::{resolve, resolved},
    arguments::{segment, tenant},
    blast::Blast,
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    list::{CountedPage, List, ListArgs},
    names::last_part,
    outcome::{CommandOutput, Failure},
    record::{Record, ShowArgs},
    tenant::tenant_of,
    text::plain,
};

pub(crate) use quarantine::LIST as QUARANTINES;
pub(crate) use quarantine::{Quarantine, Quarantines};
use suspension::{id_and_state, made};

#[derive(Debug, Args)]
pub struct Stop {
    /// The agent's name, or the id of an agent or of another principal
    #[arg(value_parser = segment)]
    actor: String,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub struct Release {
    /// The id of the stop signal, or of the quarantine
    #[arg(value_parser = segment)]
    id: String,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
pub enum StopSignals {
    /// Lists stop signals, oldest first
    List(ListArgs<Filter>),
    /// Reads a stop signal
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    /// Only stop signals of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// Only stop signals in this state
    #[arg(long, value_parser = ["active", "lifted"])]
    state: Option<String>,
    /// Only stop signals for this principal: an agent's name, or an id
    #[arg(long = "actor", visible_alias = "actor-id", value_name = "ID")]
    actor_id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

const SIGNALS: [&str; 2] = [SURFACE, "stop-signals"];

pub(super) const LIST: List = List {
    path: &SIGNALS,
    member: "stop_signals",
    columns: &["id", "state", "actor_id", "reason", "created_by", "created_at"],
};

const RECORD: Record = Record { path: &SIGNALS, envelope: Some("stop_signal") };

impl StopSignals {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(ListArgs { mut filter, server }) => {
                let server = connector.connect(server).await?;
                resolve(&server, &mut filter.actor_id).await?;
                LIST.page(&server, &filter).await
            }
            Self::Show(args) => RECORD.show(args, connector).await,
        }
    }
}

impl Stop {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        let actor = resolved(&server, &self.actor, self.confirm).await?;
        if !self.confirm.yes {
            let blast = Blast::of_stop(&server, &json!({"subject_id": actor})).await?;
            let shown = format!(
                "Stopping {} on {} denies all its requests and all requests of agents under it until \
                 the signal is released.\n{}",
                blast.name(&actor),
                server.address(),
                blast.text(),
            );
            self.confirm.agree(&shown, &format!("Stop {}?", plain(last_part(&actor))))?;
        }
        let body = json!({"actor_id": actor, "reason": self.reason,
                          "tenant_id": tenant_of(&server, &actor)});
        made(&server, &SIGNALS, "stop_signal", &body).await
    }
}

impl Release {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let is_signal = IdParts::of(&self.id).is_some_and(|id| id.kind == "stop_signal");
        let (record, verb, ended) = if is_signal {
            (RECORD, "lift", "stop_signal")
        } else {
            (quarantine::RECORD, "release", "quarantine")
        };
        let server = connector.connect(self.server).await?;
        let path = [server.path(record.path), vec![&self.id]].concat();
        if !self.confirm.yes {
            let body = server.get(&path, &()).await?;
            let shown = record.shown(&server, body)?.text;
            self.confirm.agree(&shown, "The suspended authority is restored. Release it?")?;
        }
        let body =
            server.post(&[&path[..], &[verb]].concat(), &json!({"reason": self.reason})).await?;
        id_and_state(&server, body, ended)
    }
}
