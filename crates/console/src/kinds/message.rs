//! Converts messages of any type from and to JSON.

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind as FieldKind, MessageDescriptor, SerializeOptions,
    Value as Proto,
};
use serde_json::{Map, Value};

/// The members that have a value, by their names in the proto.
pub(crate) fn json(message: &DynamicMessage) -> Map<String, Value> {
    let options =
        SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    match message.serialize_with_options(serde_json::value::Serializer, &options) {
        Ok(Value::Object(members)) => {
            members.into_iter().map(|(name, value)| (name, tidy(value))).collect()
        }
        _ => Map::new(),
    }
}

/// Sorts the members of objects by name, because a free-form member has no order. Its numbers are floating-point:
/// whole numbers are shown without a fraction.
fn tidy(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, tidy(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidy).collect()),
        Value::Number(number) => match number.as_f64().map(|number| format!("{number}")) {
            Some(text) if number.is_f64() => {
                serde_json::from_str(&text).unwrap_or(Value::Number(number))
            }
            _ => Value::Number(number),
        },
        other => other,
    }
}

/// Creates a message with these members.
///
/// # Errors
/// Each member with a value of a wrong type, with the reason.
pub(crate) fn of_json(
    message: &MessageDescriptor,
    members: Map<String, Value>,
) -> Result<DynamicMessage, Vec<(String, String)>> {
    let parse = |members| DynamicMessage::deserialize(message.clone(), Value::Object(members));
    match parse(members.clone()) {
        Ok(message) => Ok(message),
        Err(all) => {
            let wrong = members.into_iter().filter_map(|(name, value)| {
                let alone = Map::from_iter([(name.clone(), value)]);
                parse(alone).err().map(|error| (name, error.to_string()))
            });
            let wrong: Vec<_> = wrong.collect();
            Err(if wrong.is_empty() { vec![(String::new(), all.to_string())] } else { wrong })
        }
    }
}

/// The text at a member; empty if there is none.
pub(crate) fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Sets a text if the message has such a member.
pub(crate) fn set_text(message: &mut DynamicMessage, name: &str, text: &str) {
    if message.try_set_field_by_name(name, Proto::String(text.to_owned())).is_err() {
        tracing::debug!(field = name, "skipped a field that a request does not have");
    }
}

/// The items of the first list of messages in the message.
pub(crate) fn listed(message: &DynamicMessage) -> Vec<DynamicMessage> {
    let is_list =
        |field: &FieldDescriptor| field.is_list() && matches!(field.kind(), FieldKind::Message(_));
    let Some(field) = prost_reflect::ReflectMessage::descriptor(message).fields().find(is_list)
    else {
        return Vec::new();
    };
    let value = message.get_field(&field);
    let items = value.as_list().unwrap_or_default();
    items.iter().filter_map(|item| item.as_message().cloned()).collect()
}
