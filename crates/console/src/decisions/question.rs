//! What was asked, in normal form: the record's request, with the context whose digest the record has.
//!
//! The API shows a context in an export alone; this one is of the decision's millisecond, subject and action, and is
//! read no further than to the decision's own line.

use authority_model::wire::Time;
use axum::body::Body;
use bytes::BytesMut;
use chrono::TimeDelta;
use http_body_util::BodyExt;
use serde_json::{Map, Value};
use tonic::Status;

use crate::{problem::is_absent, rpc, view::View};

/// The longest line of an export, in bytes: a record, and a context of the size that the API takes.
const LONGEST: usize = 4 << 20;

/// A decision's question.
pub(super) struct Question {
    pub(super) members: Map<String, Value>,
    /// Why there is no context.
    pub(super) without: Option<&'static str>,
}

/// What is known of a context.
enum Context {
    Read(Map<String, Value>),
    /// The decision has none any more.
    Erased,
    /// The person may not read it.
    Hidden,
    /// It could not be read: whether there is one is not known.
    Unread,
}

/// The question of a decision.
pub(super) async fn of(view: &View, id: &str, record: &Value, at: Option<Time>) -> Question {
    let mut members = record["request"].as_object().cloned().unwrap_or_default();
    let without = match context(view, id, record, at).await {
        Context::Read(context) => {
            members.remove("context_digest");
            members.insert("context".to_owned(), Value::Object(context));
            None
        }
        Context::Erased => Some("The context was erased. The record has its digest."),
        Context::Hidden => Some("Your role does not read contexts. The record has its digest."),
        Context::Unread => Some("The context could not be read now. Reload the page."),
    };
    Question { members, without }
}

async fn context(view: &View, id: &str, record: &Value, at: Option<Time>) -> Context {
    if !view.may(rpc::EXPORT_DECISIONS) {
        return Context::Hidden;
    }
    match exported(view, id, record, at).await {
        Ok(Some(line)) => match &line["context"]["value"] {
            Value::Object(context) => Context::Read(context.clone()),
            _ => Context::Erased,
        },
        Ok(None) => Context::Unread,
        Err(status) if is_absent(&status) => Context::Hidden,
        Err(_) => Context::Unread,
    }
}

/// The decision's line in the export of its millisecond, the grain of its times.
async fn exported(
    view: &View,
    id: &str,
    record: &Value,
    at: Option<Time>,
) -> Result<Option<Value>, Status> {
    let Some(at) = at.and_then(|at| at.moment()) else { return Ok(None) };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members = [
        ("tenant_id", text(&record["tenant_id"])),
        ("subject", text(&record["request"]["subject"])),
        ("action", text(&record["request"]["action"])),
        ("since", Time::from(at).to_string()),
        ("until", Time::from(at + TimeDelta::milliseconds(1)).to_string()),
        ("context", "true".to_owned()),
    ];
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
    let path = format!("{}?{query}", view.path("decisions:export"));
    let is_own = |line: &Value| line["decision"]["decision_id"] == id;
    Ok(first_line(view.calls.get(&path).await?.into_body(), is_own).await)
}

/// The first line for which `is_own` holds; `None` if there is none, or the lines end too early.
async fn first_line(mut body: Body, is_own: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            read.extend_from_slice(&data);
        }
        while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            let line = read.split_to(end + 1);
            match serde_json::from_slice(&line) {
                Ok(line) if is_own(&line) => return Some(line),
                _ => {}
            }
        }
        if read.len() > LONGEST {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// A body that comes in these parts.
    fn body(parts: &'static [&'static str]) -> Body {
        Body::from_stream(stream::iter(parts.iter().map(|part| Ok::<_, std::io::Error>(*part))))
    }

    #[tokio::test]
    async fn a_line_is_found_wherever_its_parts_end() {
        let is_own = |line: &Value| line["id"] == "b";
        for parts in [
            &["{\"id\":\"a\"}\n{\"id\":\"b\",\"x\":1}\n"][..],
            &["{\"id\":\"a\"}\n{\"id\"", ":\"b\",\"x\":1}", "\n{\"id\":\"c\"}\n"],
        ] {
            let line = first_line(body(parts), is_own).await;
            assert_eq!(line.unwrap()["x"], 1, "{parts:?}");
        }
        // One that was cut off says nothing.
        for parts in [&["{\"id\":\"a\"}\n"][..], &["{\"id\":\"b\""], &[]] {
            assert!(first_line(body(parts), is_own).await.is_none(), "{parts:?}");
        }
    }
}
