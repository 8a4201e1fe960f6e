//! `search`: decisions, approval requests, principals and records by id, name or declared fact.

use std::io;

use authority_client::SURFACE;
use authority_ids::TenantRef;
use clap::Args;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    arguments::tenant,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    table,
    tenant::meant,
};

#[derive(Debug, Args)]
pub struct Search {
    #[command(flatten)]
    sought: Sought,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
struct Sought {
    /// An id, a name, or the exact payee, account, document, recipient, target or amount, as
    /// `12,400.00 EUR` or `document:RE-2026-118`
    #[arg(value_name = "TEXT")]
    q: String,
    /// Search this tenant, by id or slug [default: the only tenant]
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
}

/// The groups of the response: the member, the word for a result, and the members of a result that
/// are shown: its id, the principal or name, the action or class, the state, and the time.
const GROUPS: [(&str, &str, [&str; 5]); 4] = [
    ("decisions", "decision", ["decision_id", "subject", "action", "decision", "evaluated_at"]),
    ("approvals", "approval", ["approval_id", "subject", "action", "state", "asked_at"]),
    ("principals", "principal", ["principal_id", "display_name", "principal_class", "state", ""]),
    ("records", "record", ["record_id", "name", "entity_type", "", ""]),
];
const COLUMNS: [&str; 6] = ["id", "found", "name", "action", "state", "at"];

impl Search {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let Self { mut sought, server } = self;
        let server = connector.connect(server).await?;
        if sought.tenant_id.is_none() {
            sought.tenant_id = meant(&server, Some(&sought.q)).await;
        }
        let body = server.get(&server.path(&[SURFACE, "search"]), &sought).await?;
        let answer = server.json(&body)?;
        let (mut records, mut aside) = (Vec::new(), Vec::new());
        for (member, word, columns) in GROUPS {
            let found = answer[member].as_array().into_iter().flatten();
            records.extend(found.map(|result| record(result, word, columns)));
            if answer[format!("more_{member}")] == true {
                aside.push(format!("there are more {member}"));
            }
        }
        if records.is_empty() {
            aside.push("nothing was found".to_owned());
        }
        let width = tcgetwinsize(io::stdout()).map(|size| size.ws_col).ok();
        let width = width.filter(|columns| *columns > 0);
        Ok(CommandOutput {
            text: table::text(&COLUMNS, &records, width, server.view()),
            json: Some(body),
            aside: aside.join("\n"),
            ..CommandOutput::default()
        })
    }
}

/// A result as a record of the table. A decision's summary is within its result.
fn record(result: &Value, word: &str, columns: [&str; 5]) -> Value {
    let shown = result.get(word).unwrap_or(result);
    let [id, name, action, state, at] = columns.map(|column| &shown[column]);
    json!({"id": id, "found": word, "name": name, "action": action, "state": state, "at": at})
}
