//! Reads the options of descriptors.

use proc_macro2::TokenStream;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value,
};

use crate::names;

/// `google.api.FieldBehavior`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Set by the server. A value from a client is refused.
    OutputOnly,
    /// Set on create and never changed.
    Immutable,
}

pub(crate) fn behaviour(field: &FieldDescriptor) -> Option<Behaviour> {
    let value = extension(&field.options(), "google.api.field_behavior")?;
    value.as_list()?.iter().filter_map(Value::as_enum_number).find_map(|number| match number {
        3 => Some(Behaviour::OutputOnly),
        5 => Some(Behaviour::Immutable),
        _ => None,
    })
}

/// The table for a record's rows, and the name of a single record.
pub(crate) struct Resource {
    pub(crate) table: String,
    pub(crate) kind: String,
}

pub(crate) fn resource(message: &MessageDescriptor) -> Option<Resource> {
    let value = extension(&message.options(), "google.api.resource")?;
    let option = value.as_message()?;
    let (table, kind) = (text(option, "plural"), text(option, "singular"));
    assert!(
        !table.is_empty() && !kind.is_empty(),
        "{}: google.api.resource needs plural (its table) and singular",
        message.full_name()
    );
    Some(Resource { table, kind })
}

/// Whether null is a distinct value of the field.
pub(crate) fn is_nullable(field: &FieldDescriptor) -> bool {
    field.field_descriptor_proto().proto3_optional()
}

/// Whether the server fills the field if a client leaves it out (AIP-203, `NON_EMPTY_DEFAULT`).
///
/// For such a field, absent and empty are different values. Every stored record has a value.
pub(crate) fn is_filled(field: &FieldDescriptor) -> bool {
    const NON_EMPTY_DEFAULT: i32 = 7;
    let value = extension(&field.options(), "google.api.field_behavior");
    let list = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    list.iter().any(|value| value.as_enum_number() == Some(NON_EMPTY_DEFAULT))
}

/// Whether the record's table has no column for the field.
pub(crate) fn is_computed(field: &FieldDescriptor) -> bool {
    let value = extension(&field.options(), "authority.rest.v1.field");
    value
        .and_then(|value| value.as_message().map(|field| flag(field, "computed")))
        .unwrap_or_default()
}

/// Whether the field is a bounding list. An empty list sets no bound and is never sent.
pub(crate) fn bounds(field: &FieldDescriptor) -> bool {
    let value = extension(&field.options(), "authority.rest.v1.field");
    value
        .and_then(|value| value.as_message().map(|field| flag(field, "bounds")))
        .unwrap_or_default()
}

/// Returns the final values of a record's state.
pub(crate) fn finals(field: &FieldDescriptor) -> Vec<String> {
    let value = extension(&field.options(), "authority.rest.v1.field");
    let value = value.as_ref().and_then(|value| value.as_message());
    value.map(|field| texts(field, "final")).unwrap_or_default()
}

/// Whether the message belongs to the service, and some record stores it whole in a column.
///
/// The column is `jsonb`, or `jsonb[]` if the field is repeated.
pub(crate) fn is_stored_whole(message: &MessageDescriptor) -> bool {
    message.package_name().starts_with("authority.")
        && message.parent_pool().all_messages().filter(|m| resource(m).is_some()).any(|record| {
            record
                .fields()
                .filter(|field| !is_computed(field))
                .any(|field| matches!(field.kind(), Kind::Message(kind) if kind == *message))
        })
}

/// Returns the option's value, or `None` if it is not set.
pub(crate) fn extension(options: &DynamicMessage, name: &str) -> Option<Value> {
    let extension = options.descriptor().parent_pool().get_extension_by_name(name)?;
    options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned())
}

pub(crate) fn message(message: &DynamicMessage, field: &str) -> Option<DynamicMessage> {
    if !message.has_field_by_name(field) {
        return None;
    }
    message.get_field_by_name(field)?.as_message().cloned()
}

pub(crate) fn flag(message: &DynamicMessage, field: &str) -> bool {
    message.get_field_by_name(field).and_then(|v| v.as_bool()).unwrap_or_default()
}

pub(crate) fn text(message: &DynamicMessage, field: &str) -> String {
    message.get_field_by_name(field).and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

pub(crate) fn texts(message: &DynamicMessage, field: &str) -> Vec<String> {
    let value = message.get_field_by_name(field);
    let list = value.as_ref().and_then(|v| v.as_list()).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns a number as a token, or `None` if it is not set.
pub(crate) fn number(message: &DynamicMessage, field: &str) -> Option<TokenStream> {
    if !message.has_field_by_name(field) {
        return None;
    }
    // The number is parsed as source text, because a literal token cannot have a sign.
    let source = match message.get_field_by_name(field)?.as_ref() {
        Value::I32(number) => number.to_string(),
        Value::I64(number) => number.to_string(),
        Value::U32(number) => number.to_string(),
        Value::U64(number) => number.to_string(),
        Value::F64(number) => format!("{number:?}"),
        _ => return None,
    };
    Some(names::parsed(&source))
}
