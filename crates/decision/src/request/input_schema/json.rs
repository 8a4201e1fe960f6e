//! A borrowed view of a JSON value. A context is a map and needn't be copied into a value.

use serde_json::{Map, Number, Value};

#[derive(Clone, Copy)]
pub(crate) enum Json<'v> {
    Null,
    Bool(bool),
    Number(&'v Number),
    Text(&'v str),
    Array(&'v [Value]),
    Object(&'v Map<String, Value>),
}

impl<'v> From<&'v Value> for Json<'v> {
    fn from(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::Array(items),
            Value::Object(members) => Self::Object(members),
        }
    }
}
