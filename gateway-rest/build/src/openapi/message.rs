//! JSON Schema of a message that the service writes as a separate document, such as an event.

use prost_reflect::{FieldDescriptor, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::{
    example,
    schema::{Schemas, Use},
};
use crate::{
    Options,
    descriptor::{self, Comment},
};

/// Returns the JSON Schema 2020-12 of a message that the service writes as a separate document,
/// such as an event. Nested messages are inlined. Members are required unless they are `optional`,
/// no member is null, and additional members are permitted. The document's JSON is not protobuf's
/// JSON mapping: a 64-bit integer is a number.
///
/// # Panics
/// If the example in the message's comment is not JSON.
pub fn schema(message: &MessageDescriptor, options: &Options) -> Value {
    object(message, &mut Schemas::new(&[], options))
}

fn object(message: &MessageDescriptor, schemas: &mut Schemas<'_>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in descriptor::fields(message) {
        if !field.field_descriptor_proto().proto3_optional() {
            required.push(field.name().to_owned());
        }
        let mut schema = member(&field, schemas);
        describe(&mut schema, Comment::of_field(&field), |text| example::parsed(text, &field));
        properties.insert(field.name().to_owned(), schema);
    }
    let mut schema = json!({"type": "object", "required": required, "properties": properties});
    describe(&mut schema, Comment::of_message(message), |text| {
        serde_json::from_str(text).unwrap_or_else(|why| panic!("{}: {why}", message.full_name()))
    });
    schema
}

fn member(field: &FieldDescriptor, schemas: &mut Schemas<'_>) -> Value {
    if let (Some(inner), false) = (descriptor::plain_message(&field.kind()), field.is_list()) {
        return object(&inner, schemas);
    }
    schemas.field(field, Use::Input)
}

fn describe(schema: &mut Value, comment: Comment, parsed: impl Fn(&str) -> Value) {
    if !comment.text.is_empty() {
        schema["description"] = comment.text.into();
    }
    if let Some(example) = comment.example {
        schema["examples"] = json!([parsed(&example)]);
    }
}
