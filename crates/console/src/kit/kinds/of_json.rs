//! Converts JSON to messages of any type.

use authority_model::wire::{Json, Time};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost::Message;
use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Value as Proto,
};
use serde_json::{Map, Value};

use crate::texts as t;

/// Creates a message with these members.
///
/// # Errors
/// Each member with a value of a wrong type, with the reason.
pub(crate) fn of_json(
    message: &MessageDescriptor,
    members: Map<String, Value>,
) -> Result<DynamicMessage, Vec<(String, String)>> {
    let mut made = DynamicMessage::new(message.clone());
    let mut wrong = Vec::new();
    for (name, value) in members {
        let found = message.get_field_by_name(&name).or(message.get_field_by_json_name(&name));
        match found.ok_or_else(|| t::kit::UNKNOWN_MEMBER.to_owned()).and_then(|field| {
            let value = of_field(&field, value)?;
            Ok((field, value))
        }) {
            Ok((field, Some(value))) => made.set_field(&field, value),
            Ok((_, None)) => {}
            Err(fault) => wrong.push((name, fault)),
        }
    }
    if wrong.is_empty() { Ok(made) } else { Err(wrong) }
}

/// The value of a field; `None` for null.
fn of_field(field: &FieldDescriptor, value: Value) -> Result<Option<Proto>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Array(items) if field.is_list() => {
            let items = items.into_iter().map(|item| of_value(&field.kind(), item));
            Ok(Some(Proto::List(items.collect::<Result<_, _>>()?)))
        }
        _ if field.is_list() => Err(t::kit::MUST_BE_LIST.to_owned()),
        value => of_value(&field.kind(), value).map(Some),
    }
}

fn of_value(kind: &Kind, value: Value) -> Result<Proto, String> {
    match (kind, value) {
        (Kind::Bool, Value::Bool(flag)) => Ok(Proto::Bool(flag)),
        (Kind::Bool, _) => Err(t::kit::MUST_BE_FLAG.to_owned()),
        (Kind::String, Value::String(text)) => Ok(Proto::String(text)),
        (Kind::String, _) => Err(t::kit::MUST_BE_TEXT.to_owned()),
        (Kind::Bytes, Value::String(text)) => {
            let bytes = STANDARD.decode(text).map_err(|_| t::kit::MUST_BE_BASE64.to_owned())?;
            Ok(Proto::Bytes(bytes.into()))
        }
        (Kind::Bytes, _) => Err(t::kit::MUST_BE_BASE64.to_owned()),
        (Kind::Enum(kind), value) => of_word(kind, &value),
        (Kind::Message(kind), value) => of_message(kind, value),
        (kind, value) => of_number(kind, &value).ok_or_else(|| t::kit::MUST_BE_NUMBER.to_owned()),
    }
}

fn of_word(kind: &EnumDescriptor, value: &Value) -> Result<Proto, String> {
    let known = value.as_str().and_then(|word| kind.get_value_by_name(word));
    let number = known.map(|known| known.number());
    let number = number.or_else(|| value.as_i64().and_then(|number| number.try_into().ok()));
    number.map(Proto::EnumNumber).ok_or_else(|| t::kit::NO_SUCH_VALUE.to_owned())
}

/// A number, also as a text. `None` if it is none, or does not fit.
fn of_number(kind: &Kind, value: &Value) -> Option<Proto> {
    let number = match value {
        Value::Number(number) => number.clone(),
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    // A whole number may be written as 5.0.
    let whole = || -> Option<i128> {
        let exact = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
        exact.or_else(|| format!("{}", number.as_f64()?).parse().ok())
    };
    match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => whole()?.try_into().ok().map(Proto::I32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => whole()?.try_into().ok().map(Proto::I64),
        Kind::Uint32 | Kind::Fixed32 => whole()?.try_into().ok().map(Proto::U32),
        Kind::Uint64 | Kind::Fixed64 => whole()?.try_into().ok().map(Proto::U64),
        Kind::Double => number.as_f64().map(Proto::F64),
        _ => None,
    }
}

fn of_message(kind: &MessageDescriptor, value: Value) -> Result<Proto, String> {
    let encoded = match (kind.full_name(), value) {
        ("google.protobuf.Timestamp", value) => {
            let time: Result<Time, _> = serde_json::from_value(value);
            time.map_err(|_| t::kit::MUST_BE_TIME)?.encode_to_vec()
        }
        ("google.protobuf.Struct", Value::Object(members)) => Json(members).encode_to_vec(),
        (_, Value::Object(members)) => {
            let made = of_json(kind, members).map_err(|wrong| {
                let each = wrong.into_iter().map(|(name, fault)| format!("{name} {fault}"));
                each.collect::<Vec<_>>().join("; ")
            });
            return made.map(Proto::Message);
        }
        _ => return Err(t::kit::MUST_BE_OBJECT.to_owned()),
    };
    let made = DynamicMessage::decode(kind.clone(), encoded.as_slice());
    made.map(Proto::Message).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use authority_model::DESCRIPTORS;
    use prost_reflect::DescriptorPool;
    use serde_json::json;

    use super::{super::json, *};

    fn message(name: &str) -> MessageDescriptor {
        DescriptorPool::decode(DESCRIPTORS).unwrap().get_message_by_name(name).unwrap()
    }

    fn made(name: &str, members: &Value) -> Result<DynamicMessage, Vec<(String, String)>> {
        of_json(&message(name), members.as_object().unwrap().clone())
    }

    #[test]
    fn a_message_is_read_and_written_the_same() {
        let tenant = json!({
            "slug": "acme",
            "valid_for_seconds": 60,
            "self_approval": true,
            "retention": {"contexts_days": 30},
            "tags": ["a", "b"],
            "metadata": {"a": 5, "b": [1.5, null, {"c": "d"}]},
            "created_at": "2026-11-29T09:19:22Z",
        });
        let read = made("authority.registry.v1.Tenant", &tenant).unwrap();
        assert_eq!(Value::Object(json(&read)), tenant);
        let camel = made("authority.registry.v1.Tenant", &json!({"validForSeconds": "60"}));
        assert_eq!(Value::Object(json(&camel.unwrap())), json!({"valid_for_seconds": 60}));
        let none = made("authority.registry.v1.Tenant", &json!({"slug": null, "tags": []}));
        assert_eq!(Value::Object(json(&none.unwrap())), json!({}));
    }

    #[test]
    fn each_wrong_member_is_named() {
        let wrong = json!({
            "slug": 5,
            "valid_for_seconds": 1.5,
            "self_approval": "yes",
            "retention": {"contexts_days": "many"},
            "tags": "a",
            "metadata": [],
            "created_at": "yesterday",
            "nonsense": 1,
        });
        let mut faults = made("authority.registry.v1.Tenant", &wrong).unwrap_err();
        faults.sort();
        let names: Vec<&str> = faults.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "created_at",
                "metadata",
                "nonsense",
                "retention",
                "self_approval",
                "slug",
                "tags",
                "valid_for_seconds"
            ]
        );
        assert_eq!(faults[3].1, "contexts_days must be a number");
    }
}
