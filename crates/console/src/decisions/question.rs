//! What was asked, in normal form: the record's request, with the context that its digest stands for.

use authority_model::wire::Time;
use chrono::TimeDelta;
use http_body_util::{BodyExt, Limited};
use serde_json::{Map, Value};

use crate::view::View;

/// The largest export of one decision, in bytes.
const LARGEST: usize = 4 << 20;

/// A decision's question.
pub(super) struct Question {
    pub(super) members: Map<String, Value>,
    /// Why there is no context.
    pub(super) without: Option<&'static str>,
}

/// The question of a decision: its context is read by the API's export, which alone shows it.
pub(super) async fn of(view: &View, id: &str, record: &Value, at: Option<Time>) -> Question {
    let mut members = record["request"].as_object().cloned().unwrap_or_default();
    if view.may(crate::rpc::EXPORT_DECISIONS) {
        let without = match exported(view, id, record, at).await {
            Some(Value::Object(context)) => {
                members.remove("context_digest");
                members.insert("context".to_owned(), Value::Object(context));
                None
            }
            _ => Some("The context was erased, or cannot be read: the record has its digest."),
        };
        return Question { members, without };
    }
    Question {
        members,
        without: Some("Your role does not read contexts: the record has its digest."),
    }
}

/// The context of the decision's line in an export of its millisecond, the grain of its times.
async fn exported(view: &View, id: &str, record: &Value, at: Option<Time>) -> Option<Value> {
    let at = at?.moment()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members = [
        ("tenant_id", text(&record["tenant_id"])),
        ("subject", text(&record["request"]["subject"])),
        ("since", Time::from(at).to_string()),
        ("until", Time::from(at + TimeDelta::milliseconds(1)).to_string()),
        ("context", "true".to_owned()),
    ];
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
    let path = format!("{}?{query}", view.path("decisions:export"));
    let body = view.calls.get(&path).await.ok()?.into_body();
    let body = Limited::new(body, LARGEST).collect().await.ok()?.to_bytes();
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let line = lines.find(|line| line["decision"]["decision_id"] == id)?;
    line.get("context")?.get("value").cloned()
}
