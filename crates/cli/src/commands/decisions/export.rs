//! `decisions export`: signed records as lines of JSON. An incomplete export is an error.

use std::io::{self, Write};

use authority_client::{Next, SURFACE};
use clap::Args;
use serde::Serialize;

use crate::{
    commands::decisions::filter::Which,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    text::{self, plain},
};

/// Writes the lines of the service as they arrive.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
struct Filter {
    #[command(flatten)]
    #[serde(flatten)]
    which: Which,
    /// Only decisions after this one: `next` of the last export, or the last id of an interrupted
    /// export
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Include the context of the requests
    #[arg(long)]
    context: bool,
}

impl Export {
    pub(super) async fn run(mut self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        self.filter.which.complete(&server).await?;
        let path = server.path(&[SURFACE, "decisions:export"]);
        let mut lines = server.lines(&path, &self.filter).await?;
        let mut last = self.filter.after;
        let cut = loop {
            match server.next(&mut lines).await? {
                Next::Line(line, value) => {
                    if writeln!(io::stdout(), "{line}").is_err() {
                        // The reader closed the pipe and needs no more output.
                        return Ok(CommandOutput::nothing());
                    }
                    if value["end"] == true {
                        let aside = format!(
                            "{} decisions, complete; continue later with --after {}",
                            value["count"],
                            plain(text::of(&value, "next"))
                        );
                        return Ok(CommandOutput { aside, ..CommandOutput::default() });
                    }
                    last = value["decision"]["decision_id"].as_str().map(str::to_owned).or(last);
                }
                Next::End => break "the service ended it".to_owned(),
                Next::Lost(why) => break why,
            }
        };
        let go_on = last.map(|last| format!("\ncontinue with --after {}", plain(&last)));
        Err(Failure::new(format!("the export was cut off: {cut}{}", go_on.unwrap_or_default())))
    }
}
