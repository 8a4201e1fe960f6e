//! Reads and sets members of messages of any type.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind as FieldKind, Value as Proto};

/// The text at a member; empty if there is none.
pub(crate) fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The texts at a member; empty if there are none.
pub(crate) fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let value = message.get_field_by_name(name);
    let list = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
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
