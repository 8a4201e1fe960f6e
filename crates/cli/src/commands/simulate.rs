//! `simulate`: decides with other facts or other policies, without recording.

use std::path::PathBuf;

use authority_client::SURFACE;
use authority_ids::{Decision, DecisionRef, EntityRef};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    arguments::id,
    connect::{Connector, ServerArgs},
    files::{self, Candidate},
    outcome::{CommandOutput, Failure},
    paint,
    reason::why,
    text::{self, plain},
    times::moment,
    view::View,
};

#[derive(Debug, Args)]
pub struct Simulate {
    /// A stored decision; its request is decided again
    #[arg(value_parser = id::<Decision>, required_unless_present = "request", conflicts_with = "request")]
    id: Option<DecisionRef>,
    /// A new request: a file of JSON in the form of `/api/v1/runtime/evaluate`; `-` is standard
    /// input
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Another amount
    #[arg(long)]
    amount: Option<f64>,
    /// Another purpose
    #[arg(long)]
    purpose: Option<String>,
    /// Another jurisdiction
    #[arg(long, value_name = "CODE")]
    jurisdiction: Option<String>,
    /// Another field of the context: `name=JSON`; repeat it
    #[arg(long = "context", value_name = "NAME=JSON", value_parser = member)]
    context: Vec<(String, Value)>,
    /// Assume that all required approvals were given
    #[arg(long)]
    approved: bool,
    /// A policy to add, or with `ID=FILE` a replacement for the policy with this id; repeat it
    #[arg(long = "policy", value_name = "[ID=]FILE", value_parser = Candidate::parse)]
    policies: Vec<Candidate>,
    /// A policy to leave out; can be given several times
    #[arg(long = "without", value_name = "ID")]
    without: Vec<EntityRef>,
    /// Use the current authority, or the authority of the stored decision
    #[arg(long, value_parser = ["present", "recorded"])]
    against: Option<String>,
    /// The time of the decision: RFC 3339, or a span before now, such as 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    at: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Parses `name=JSON`; a value that is not JSON is text.
fn member(text: &str) -> Result<(String, Value), &'static str> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=JSON")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

impl Simulate {
    /// The changed facts.
    fn changes(&self) -> Value {
        let context = Map::from_iter(self.context.clone());
        let mut changes = json!({"amount": self.amount, "purpose": self.purpose,
            "jurisdiction": self.jurisdiction, "approved": self.approved, "context": context});
        if let Some(members) = changes.as_object_mut() {
            members.retain(|_, value| {
                !value.is_null()
                    && *value != false
                    && value.as_object().is_none_or(|it| !it.is_empty())
            });
        }
        changes
    }

    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let request = self.request.as_deref().map(files::json).transpose()?;
        let changes = Some(self.changes()).filter(|changes| *changes != json!({}));
        let mut question = json!({"decision_id": self.id, "request": request, "at": self.at,
            "against": self.against, "changes": changes, "without_policies": self.without,
            "candidate_policies": Candidate::bodies(&self.policies)?});
        if let Some(members) = question.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        let server = connector.connect(self.server).await?;
        let path = server.path(&[SURFACE, "decisions:simulate"]);
        let body = server.post(&path, &question).await?;
        let text = text(&server.json(&body)?, server.view());
        Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
    }
}

fn text(simulated: &Value, view: View) -> String {
    let mut lines = vec![outcome("would be", simulated)];
    if simulated["before"].is_object() {
        let changed = if simulated["would_change"] == true { "was" } else { "as before" };
        lines.push(outcome(changed, &simulated["before"]));
    }
    let people = &simulated["approvals_needed"];
    if people.is_object() {
        lines.push(format!("people     {}{}", people["count"], list(people, "roles", " with ")));
    }
    for (heading, member) in [("duties     ", "obligations"), ("ends with  ", "stop_conditions")] {
        let found = list(simulated, member, heading);
        lines.extend(Some(found).filter(|found| !found.is_empty()));
    }
    for advice in simulated["advice"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        lines.push(format!("advice     {}", plain(advice)));
    }
    for stage in simulated["stages"].as_array().into_iter().flatten() {
        let code = stage["reason_code"].as_str().map(|code| format!(": {}", plain(code)));
        let (name, found) = (text::of(stage, "stage"), text::of(stage, "outcome"));
        lines.push(format!(
            "stage      {:10} {}{}",
            plain(name),
            plain(found),
            code.unwrap_or_default()
        ));
    }
    if let Some(change) = simulated["smallest_change"]["sentence"].as_str() {
        lines.push(format!("to change  {}", plain(change)));
    }
    lines.extend(Candidate::findings(simulated));
    let at = view.time(text::of(simulated, "evaluated_at")).unwrap_or_default();
    lines.push(format!("as of      {at}; not recorded"));
    lines.join("\n")
}

fn outcome(heading: &str, outcome: &Value) -> String {
    let decision = paint::state(&plain(text::of(outcome, "decision")));
    format!("{heading:10} {decision}: {}", why(text::of(outcome, "reason_code")))
}

fn list(record: &Value, member: &str, before: &str) -> String {
    let items: Vec<_> =
        record[member].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if items.is_empty() { String::new() } else { plain(&format!("{before}{}", items.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_the_context_is_json_or_a_text() {
        assert_eq!(member("amount=12").unwrap(), ("amount".to_owned(), json!(12)));
        assert_eq!(member("iban=DE89=x").unwrap(), ("iban".to_owned(), json!("DE89=x")));
        assert_eq!(member("note=null").unwrap().1, Value::Null);
        assert!(member("note").is_err());
    }
}
