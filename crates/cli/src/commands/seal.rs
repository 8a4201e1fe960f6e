//! `seal`: puts a decision's record into its tenant's log, and fetches the files that verify it
//! offline.

use std::{
    fs,
    path::{Path, PathBuf},
};

use authority_ids::{Decision, DecisionRef};
use clap::Args;
use serde_json::json;

use crate::{
    arguments::id,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    place,
    text::{self, plain},
};

#[derive(Debug, Args)]
pub struct Seal {
    /// The decision's id
    #[arg(value_parser = id::<Decision>)]
    id: DecisionRef,
    /// Write the bundle to this file, such as `invoice-4711.bundle.json`: the pack, and the
    /// context, facts and policies for repeating the decision
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Write the evidence pack to this file, such as `invoice-4711.pack.json`
    #[arg(long, value_name = "FILE")]
    pack: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

impl Seal {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        let body =
            server.post(&["v1", "evidence", "seal"], &json!({"decision_id": self.id})).await?;
        let pack = server.json(&body)?;
        let mut written = Vec::new();
        if let Some(file) = &self.pack {
            written.push(write(file, &body)?);
        }
        if let Some(file) = &self.bundle {
            let bundle =
                server.get(&["v1", "evidence", &self.id], &json!({"bundle": true})).await?;
            written.push(write(file, &bundle)?);
        }
        if !written.is_empty() {
            let keys = server.address_of(&[".well-known", "jwks.json"])?;
            written.push("with the published keys, preferably saved earlier:".to_owned());
            written.push(format!("  curl -s {keys} > jwks.json"));
        }
        let log = &pack["log"];
        let sealed_at = server.view().exact_time(text::of(&pack, "sealed_at"));
        let text = format!(
            "{}  sealed {}\nrecord   {}\nlog      {}, index {}",
            plain(text::of(&pack, "id")),
            sealed_at.unwrap_or_default(),
            plain(text::of(&pack, "record_digest")),
            plain(text::of(log, "origin")),
            log["index"],
        );
        Ok(CommandOutput {
            text,
            json: Some(body),
            aside: written.join("\n"),
            ..CommandOutput::default()
        })
    }
}

/// Writes a file exactly as received, and returns how to verify it.
fn write(file: &Path, body: &str) -> Result<String, Failure> {
    let shown = file.display().to_string();
    fs::write(file, body).map_err(|error| Failure::new(format!("`{shown}`: {error}")))?;
    let (program, file) = (place::program(), place::quoted(&shown));
    Ok(format!("wrote {shown}; this prints `valid`:\n  {program} verify {file} --jwks jwks.json"))
}
