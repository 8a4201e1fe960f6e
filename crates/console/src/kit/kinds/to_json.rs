//! Converts messages of any type to JSON.

use authority_model::wire::{Json, Time};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage, Value as Proto};
use serde_json::{Map, Value};

/// The members that have a value, by their names in the proto. Objects without declared members are
/// sorted by name, because they have no order.
pub(crate) fn json(message: &DynamicMessage) -> Map<String, Value> {
    message
        .fields()
        .map(|(field, value)| (field.name().to_owned(), of_value(&field, value)))
        .collect()
}

fn of_value(field: &FieldDescriptor, value: &Proto) -> Value {
    match value {
        Proto::Bool(flag) => Value::from(*flag),
        Proto::I32(number) => Value::from(*number),
        Proto::I64(number) => Value::from(*number),
        Proto::U32(number) => Value::from(*number),
        Proto::U64(number) => Value::from(*number),
        Proto::F32(number) => Value::from(*number),
        Proto::F64(number) => Value::from(*number),
        Proto::String(text) => Value::from(text.as_str()),
        Proto::Bytes(bytes) => Value::from(STANDARD.encode(bytes)),
        Proto::EnumNumber(number) => of_enum(field, *number),
        Proto::Message(message) => of_message(message),
        Proto::List(items) => items.iter().map(|item| of_value(field, item)).collect(),
        // No message of this service has a map.
        Proto::Map(_) => Value::Null,
    }
}

fn of_enum(field: &FieldDescriptor, number: i32) -> Value {
    let kind = field.kind();
    let known = match &kind {
        Kind::Enum(kind) => kind.get_value(number),
        _ => None,
    };
    known.map_or_else(|| Value::from(number), |known| Value::from(known.name()))
}

fn of_message(message: &DynamicMessage) -> Value {
    match message.descriptor().full_name() {
        "google.protobuf.Timestamp" => {
            let time: Option<Time> = message.transcode_to().ok();
            time.and_then(|time| serde_json::to_value(time).ok()).unwrap_or_default()
        }
        "google.protobuf.Struct" => {
            let object: Option<Json> = message.transcode_to().ok();
            object.map_or(Value::Null, |object| sorted(Value::Object(object.0)))
        }
        _ => Value::Object(json(message)),
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
