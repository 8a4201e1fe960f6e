//! `policies impact`: which of the last decisions other policies would have changed.

use clap::{Args, value_parser};
use serde_json::{Value, json};

use crate::cli::{
    Actions, Failure,
    outcome::CommandOutput,
    remote::{
        connect::{Connector, ServerArgs},
        files::Candidate,
        list::Found,
        surface::SURFACE,
        tenant,
        text::{self, plain},
        times::moment,
    },
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Impact {
    /// A policy to add, or with `ID=FILE` in place of the one with this id
    #[arg(value_name = "[ID=]FILE", value_parser = Candidate::parse, required_unless_present = "without")]
    policies: Vec<Candidate>,
    /// A policy to leave out; repeat it
    #[arg(long = "without", value_name = "ID")]
    without: Vec<String>,
    /// The tenant whose decisions are considered, by id or slug: the owner names one
    #[arg(long = "tenant", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// How many of the newest decisions [default: 100]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u16).range(1..=1000))]
    last: Option<u16>,
    /// Only those at or after this time: of RFC 3339, or a span before now, such as 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    since: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

const COLUMNS: [&str; 6] = ["decision_id", "evaluated_at", "subject", "action", "before", "after"];

impl Impact {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        let question = json!({"candidate_policies": Candidate::bodies(&self.policies)?,
            "without_policies": self.without, "tenant_id": self.tenant_id, "last": self.last,
            "since": self.since});
        let server = connector.connect(self.server).await?;
        let body = server.post(&server.path(&[SURFACE, "policies:impact"]), &question).await?;
        let found = server.json(&body)?;
        let told = format!(
            "{} of {} decisions would change{}",
            found["changed_total"],
            found["considered"],
            match found["unreadable"].as_u64() {
                None | Some(0) => String::new(),
                Some(count) => format!("; {count} could not be decided again"),
            },
        );
        let mut found = Found::of(&server, body, "changed")?;
        for changed in &mut found.records {
            for side in ["before", "after"] {
                changed[side] = outcome(&changed[side]).into();
            }
        }
        let output = found.shown("changes", &COLUMNS);
        Ok(CommandOutput { aside: told, ..output })
    }
}

fn outcome(outcome: &Value) -> String {
    plain(&format!("{}: {}", text::of(outcome, "decision"), text::of(outcome, "reason_code")))
}
