//! `decisions packs`: the evidence packs of an export's decisions, as lines of JSON. With them,
//! `verify --export` checks that the export is complete.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
};

use authority_ids::DecisionId;
use clap::Args;
use serde_json::Value;

use crate::{
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
};

#[derive(Debug, Args)]
pub struct Packs {
    /// The export
    export: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

impl Packs {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let shown = self.export.display().to_string();
        let unreadable = |why: io::Error| Failure::usage(format!("`{shown}`: {why}"));
        let lines = BufReader::new(File::open(&self.export).map_err(unreadable)?).lines();
        let server = connector.connect(self.server).await?;
        let (mut count, mut is_complete) = (0_u64, false);
        for (place, line) in lines.enumerate() {
            let line: Value = serde_json::from_str(&line.map_err(unreadable)?)
                .map_err(|why| Failure::usage(format!("`{shown}`: line {}: {why}", place + 1)))?;
            if line["end"] == true {
                is_complete = true;
                break;
            }
            let id = line["decision"]["decision_id"].as_str().unwrap_or_default();
            let id = DecisionId::parse(id).map_err(|why| {
                Failure::usage(format!("`{shown}`: line {}: `{id}` {why}", place + 1))
            })?;
            let pack = server.get(&["v1", "evidence", id.as_str()], &()).await;
            let pack = pack.map_err(|refused| refused.with(UNSEALED))?;
            if writeln!(io::stdout(), "{}", pack.trim_end()).is_err() {
                // The reader closed the pipe and needs no more output.
                return Ok(CommandOutput::nothing());
            }
            count += 1;
        }
        let aside = format!("{count} packs");
        let output = CommandOutput { aside, ..CommandOutput::default() };
        if is_complete {
            return Ok(output);
        }
        Err(Failure::new(format!("`{shown}` is cut off: no line has `end`; export again")))
    }
}

const UNSEALED: &str =
    "a decision has a pack when it is in the log: within seconds if its tenant has `auto_seal`";
