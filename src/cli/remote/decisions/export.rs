//! `decisions export`: signed records as lines of JSON, complete or said not to be.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use super::Which;
use crate::cli::{
    Actions, Failure,
    outcome::CommandOutput,
    remote::{
        connect::{Connector, ServerArgs},
        stream::Next,
        surface::SURFACE,
        text::{self, plain},
    },
};

/// Writes the lines of the service as they come.
#[derive(Debug, Args)]
pub(in crate::cli) struct Export {
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
    /// Only those after this decision: `next` of the last export, or the last id of one that was cut off
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Whether to show what the requests had as their context
    #[arg(long)]
    context: bool,
}

impl Export {
    pub(super) async fn run(
        mut self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        self.filter.which.complete(&server).await?;
        let path = server.path(&[SURFACE, "decisions:export"]);
        let mut lines = server.lines(&path, &self.filter).await?;
        let mut last = self.filter.after;
        let cut = loop {
            match lines.next().await? {
                Next::Line(line, value) => {
                    if writeln!(io::stdout(), "{line}").is_err() {
                        // Whoever reads it has read enough.
                        return Ok(CommandOutput::nothing());
                    }
                    if value["end"] == true {
                        let aside = format!(
                            "{} decisions, complete; go on later with --after {}",
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
        let go_on = last.map(|last| format!("\ngo on with --after {}", plain(&last)));
        Err(Failure::new(format!("the export was cut off: {cut}{}", go_on.unwrap_or_default())))
    }
}
