//! Finds the requirements that loosen if a rule for requests changes or ends. The API reports them beforehand.

use authority_decision::milder::MILDER;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use super::call::call;
use crate::kit::{kinds::Operation, view::View};

/// The field that makes an operation a dry run.
const TRIED: &str = "validate_only";

/// Lists the rules that the operation would loosen.
///
/// Empty if the operation would be refused: the form shows the refusal on submission.
pub(super) async fn of(
    view: &View,
    operation: &Operation,
    request: &DynamicMessage,
    headers: &[(&'static str, &str)],
) -> Vec<String> {
    let mut request = request.clone();
    if request.descriptor().get_field_by_name(TRIED).is_none() {
        return Vec::new();
    }
    request.set_field_by_name(TRIED, Value::Bool(true));
    match call(view, operation, &request, headers).await {
        Ok(answered) => warnings(&answered.message),
        Err(_) => Vec::new(),
    }
}

/// Tries an operation with no other field than the record's id.
pub(super) async fn of_record(view: &View, operation: &Operation, id: &str) -> Vec<String> {
    let mut request = DynamicMessage::new(operation.input.clone());
    request.set_field_by_name("id", Value::String(id.to_owned()));
    of(view, operation, &request, &[]).await
}

/// The warnings of a record, or of the record in a response.
fn warnings(answer: &DynamicMessage) -> Vec<String> {
    let mut found = Vec::new();
    for (field, value) in answer.fields() {
        match value {
            Value::List(lines) if field.name() == "warnings" => {
                let lines = lines.iter().filter_map(Value::as_str);
                let milder = lines.filter_map(|line| line.strip_prefix(MILDER));
                found.extend(milder.map(|line| line.replace('`', "")));
            }
            Value::Message(record) => found.extend(warnings(record)),
            _ => {}
        }
    }
    found
}
