//! Examples for the members of a form, from the proto's own examples or from the message's
//! structure.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind as FieldKind, MessageDescriptor};
use serde_json::{Map, Value};

use super::describe::{below, example as of_comment, extension};

/// The maximum depth of messages in an example.
const DEPTH: usize = 3;

/// A value that the member could have, as JSON in one line.
pub(super) fn example(field: &FieldDescriptor) -> Option<String> {
    let message = field.parent_message();
    let own = of_comment(&message.parent_file(), field.path());
    if serde_json::from_str::<Value>(&own).is_ok() {
        return Some(own);
    }
    let record = of_comment(&message.parent_file(), message.path());
    let record = serde_json::from_str::<Map<String, Value>>(&record).ok();
    let value = record.and_then(|mut record| record.remove(field.name()));
    Some(value.or_else(|| made(field, DEPTH))?.to_string())
}

/// A value made from the rules and examples of the descriptors.
fn made(field: &FieldDescriptor, depth: usize) -> Option<Value> {
    let one = match field.kind() {
        FieldKind::Message(message) => of_message(&message, depth.checked_sub(1)?)?,
        FieldKind::String => Value::from(word(field)),
        FieldKind::Bool => Value::Bool(true),
        FieldKind::Enum(words) => Value::from(words.values().nth(1)?.name()),
        FieldKind::Bytes => return None,
        _ => number(field),
    };
    Some(if field.is_list() { Value::Array(vec![one]) } else { one })
}

fn of_message(message: &MessageDescriptor, depth: usize) -> Option<Value> {
    if message.full_name() == "google.protobuf.Struct" {
        return Some(serde_json::json!({"name": "value"}));
    }
    if message.full_name() == "google.protobuf.Timestamp" {
        return Some(Value::from("2026-11-24T09:00:00Z"));
    }
    if !message.package_name().starts_with("authority.") {
        return None;
    }
    // Some fields can't be given together. The message's own example is therefore preferred.
    let own = of_comment(&message.parent_file(), message.path());
    if let Ok(own) = serde_json::from_str(&own) {
        return Some(own);
    }
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|field| field.path().last().copied());
    let members =
        fields.iter().filter_map(|field| Some((field.name().to_owned(), made(field, depth)?)));
    Some(Value::Object(members.collect()))
}

/// A word of the rules, or otherwise the example in the comment.
fn word(field: &FieldDescriptor) -> String {
    let rules = rules(field);
    let listed = |path: &[&str]| {
        let value = below(rules.as_ref()?, path)?;
        value.as_list()?.first()?.as_str().map(str::to_owned)
    };
    let paths: [&[&str]; 2] = [&["string", "in"], &["repeated", "items", "string", "in"]];
    if let Some(word) = paths.into_iter().find_map(listed) {
        return word;
    }
    let own = of_comment(&field.parent_message().parent_file(), field.path());
    if own.is_empty() { "…".to_owned() } else { own }
}

/// Returns a day if the member is a number of seconds, otherwise 1.
fn number(field: &FieldDescriptor) -> Value {
    Value::from(if field.name().ends_with("_seconds") { 86_400 } else { 1 })
}

fn rules(field: &FieldDescriptor) -> Option<DynamicMessage> {
    extension(&field.options(), "buf.validate.field")?.as_message().cloned()
}

#[cfg(test)]
mod tests {
    use super::{super::kind::Kind, *};

    #[test]
    fn a_member_that_is_json_has_an_example() {
        let delegation = &Kind::at("delegations").unwrap().record;
        let of = |name: &str| example(&delegation.get_field_by_name(name).unwrap()).unwrap();
        assert_eq!(of("max_total_amount"), r#"{"amount":"10000.00","window_seconds":86400}"#);
        assert_eq!(
            of("hours"),
            r#"{"time_zone":"Europe/Berlin","days":["mon","tue"],"from":"08:00","to":"18:00"}"#
        );
        assert_eq!(of("metadata"), r#"{"name":"value"}"#);
        assert_eq!(of("max_amount"), "\"100\"");
    }
}
