//! `policies observe` and `policies unobserve`. They change no decision and do not prompt.

use authority_ids::{Entity, EntityRef};
use clap::Args;
use serde_json::{Value, json};

use super::text::POLICIES;
use crate::{
    arguments::id,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    text::plain,
};

#[derive(Debug, Args)]
pub struct Observe {
    /// The policy's id
    #[arg(value_parser = id::<Entity>)]
    id: EntityRef,
    /// The version of its text [default: the newest]
    #[arg(value_name = "VERSION")]
    number: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub struct Unobserve {
    /// The policy's id
    #[arg(value_parser = id::<Entity>)]
    id: EntityRef,
    #[command(flatten)]
    server: ServerArgs,
}

impl Observe {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let question = json!({"version": self.number});
        sent(connector, self.server, &self.id, ("observe", question)).await
    }
}

impl Unobserve {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        sent(connector, self.server, &self.id, ("unobserve", json!({}))).await
    }
}

async fn sent(
    connector: &Connector<'_>,
    server: ServerArgs,
    id: &EntityRef,
    (verb, question): (&str, Value),
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let path = [server.path(&POLICIES), vec![id, verb]].concat();
    let body = server.post(&path, &question).await?;
    let observing = match server.json(&body)?["policy"]["observing_version"].as_u64() {
        Some(version) => format!("version {version} is observing"),
        None => "no version is observing".to_owned(),
    };
    let text = format!("{}  {observing}", plain(id));
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}
