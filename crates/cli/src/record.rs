//! Shows a whole record: a line for each member, with nested values indented below.

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::{
    arguments::segment,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    server::Server,
    text::{NOTHING, plain},
    view::View,
};

const STEP: &str = "  ";

/// A record of the service that is read by its id.
pub(crate) struct Record {
    /// The segments of its path before the id.
    pub(crate) path: &'static [&'static str],
    /// The member of the response that contains the record; `None` if the response is the record.
    pub(crate) envelope: Option<&'static str>,
}

/// The arguments of a command that shows a record: its id and the server.
#[derive(Debug, Args)]
pub struct ShowArgs<O: Args = ()> {
    /// The record's id
    #[arg(value_parser = segment)]
    pub(crate) id: String,
    #[command(flatten)]
    options: O,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The options of records that are kept after deletion.
#[derive(Debug, Args, Serialize)]
pub struct WithDeleted {
    /// Also show a deleted record
    #[arg(long)]
    deleted: bool,
}

impl Record {
    pub(crate) async fn show<O: Args + Serialize>(
        &self,
        ShowArgs { id, options, server }: ShowArgs<O>,
        connector: &Connector<'_>,
    ) -> Result<CommandOutput, Failure> {
        let server = connector.connect(server).await?;
        let path = [server.path(self.path), vec![&id]].concat();
        let body = server.get(&path, &options).await?;
        self.shown(&server, body)
    }

    /// Shows the record in a response.
    pub(crate) fn shown(&self, server: &Server, body: String) -> Result<CommandOutput, Failure> {
        let response = server.json(&body)?;
        let record = match self.envelope {
            Some(envelope) => response.get(envelope),
            None => Some(&response),
        };
        let record = record.filter(|record| record.is_object());
        let record = record.ok_or_else(|| server.unexpected("no record in the response"))?;
        let text = text(record, server.view());
        Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
    }
}

/// Formats `member: value` lines, in the service's order. Null and empty values are `-`.
pub(crate) fn text(record: &Value, view: View) -> String {
    let mut out = String::new();
    members(&mut out, record, "", view);
    out
}

fn members(out: &mut String, record: &Value, indent: &str, view: View) {
    for (name, value) in record.as_object().into_iter().flatten() {
        out.push_str(indent);
        out.push_str(&plain(name));
        out.push(':');
        below(out, value, &format!("{indent}{STEP}"), view);
    }
}

/// Writes a value after its name, on the same line if it fits.
fn below(out: &mut String, value: &Value, indent: &str, view: View) {
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            out.push('\n');
            members(out, value, indent, view);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                self::item(out, item, indent, view);
            }
        }
        Value::String(text) if text.trim_end().contains('\n') => {
            out.push_str(" |\n");
            for line in text.trim_end().lines() {
                out.push_str(format!("{indent}{}", plain(line)).trim_end());
                out.push('\n');
            }
        }
        scalar => {
            out.push(' ');
            out.push_str(&one(scalar, view));
            out.push('\n');
        }
    }
}

fn item(out: &mut String, item: &Value, indent: &str, view: View) {
    let mut inner = String::new();
    let deeper = format!("{indent}{STEP}");
    match item {
        Value::Object(object) if !object.is_empty() => members(&mut inner, item, &deeper, view),
        _ => below(&mut inner, item, &deeper, view),
    }
    out.push_str(indent);
    out.push('-');
    // The dash takes the place of the first line's indent.
    match inner.strip_prefix(&deeper) {
        Some(rest) => {
            out.push(' ');
            out.push_str(rest);
        }
        None => out.push_str(&inner),
    }
}

fn one(value: &Value, view: View) -> String {
    match value {
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        Value::String(text) => {
            view.exact_time(text).unwrap_or_else(|| plain(text.trim_end_matches('\n')))
        }
        // Empty values; other lists and objects have their own lines.
        Value::Null | Value::Array(_) | Value::Object(_) => NOTHING.to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_stand_in_their_own_order_with_what_is_within_them_below() {
        let record = json!({
            "id": "svc:tenant:acme", "count": 3, "on": false, "notes": null, "tags": [],
            "gate": {"tightenings": [
                {"risk_tier": "high", "oversight": "two_person"},
                {"risk_tier": null, "more": {"a": "b"}},
            ]},
            "actions": ["payment.execute", "payment.*"],
            "metadata": {},
            "cedar": "permit (\n  principal\n);\n",
        });
        let expected = "\
id: svc:tenant:acme
count: 3
on: false
notes: -
tags: -
gate:
  tightenings:
    - risk_tier: high
      oversight: two_person
    - risk_tier: -
      more:
        a: b
actions:
  - payment.execute
  - payment.*
metadata: -
cedar: |
  permit (
    principal
  );
";
        assert_eq!(text(&record, View::default()), expected);
    }

    #[test]
    fn lists_of_lists_and_control_characters_are_shown_too() {
        let record = json!({"a": [[1, 2], {}], "b": "x\u{1b}c", "c\u{7}": "one\r\ntwo\u{8}"});
        let expected =
            "a:\n  -\n    - 1\n    - 2\n  - -\nb: x\\u{1b}c\nc\\u{7}: |\n  one\n  two\\u{8}\n";
        assert_eq!(text(&record, View::default()), expected);
    }
}
