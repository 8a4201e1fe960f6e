//! A record that suspends authority: a stop signal, or a quarantine.

use serde_json::Value;

use crate::{
    outcome::{CommandOutput, Failure},
    paint,
    server::Server,
    text::{self, plain},
};

/// Creates a record that suspends authority.
pub(super) async fn made(
    server: &Server,
    path: &[&str],
    envelope: &str,
    body: &Value,
) -> Result<CommandOutput, Failure> {
    let body = server.post(&server.path(path), body).await?;
    let mut output = id_and_state(server, body, envelope)?;
    let id = output.text.split_whitespace().next().unwrap_or_default();
    output.aside = format!("to end it: {}", server.command(&format!("release {id}")));
    Ok(output)
}

/// Returns the id and the state of the record in a response.
pub(super) fn id_and_state(
    server: &Server,
    body: String,
    envelope: &str,
) -> Result<CommandOutput, Failure> {
    let record = &server.json(&body)?[envelope];
    let state = paint::state(&plain(text::of(record, "state")));
    let text = format!("{}  {state}", plain(text::of(record, "id")));
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}
