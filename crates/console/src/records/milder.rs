//! What becomes milder if a record that binds requests is changed or ends. The API says so before it is done.

use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use super::call::call;
use crate::{kinds::Operation, view::View};

/// The member by which an operation is only tried.
const TRIED: &str = "validate_only";
/// Begins the warnings about what becomes milder.
const MILDER: &str = "milder: ";

/// What the operation would make milder; nothing if it would be refused, which the form shows when it is sent.
pub(super) async fn of(
    view: &View,
    operation: &Operation,
    request: &DynamicMessage,
) -> Vec<String> {
    let mut request = request.clone();
    if request.descriptor().get_field_by_name(TRIED).is_none() {
        return Vec::new();
    }
    request.set_field_by_name(TRIED, Value::Bool(true));
    match call(view, operation, &request, &[]).await {
        Ok(answered) => warnings(&answered.message),
        Err(_) => Vec::new(),
    }
}

/// The same for an operation on the record with this id that takes nothing else.
pub(super) async fn of_record(view: &View, operation: &Operation, id: &str) -> Vec<String> {
    let mut request = DynamicMessage::new(operation.input.clone());
    request.set_field_by_name("id", Value::String(id.to_owned()));
    of(view, operation, &request).await
}

/// The warnings of a record, or of the one in an answer.
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
