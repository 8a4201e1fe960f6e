//! A JSON object: `google.protobuf.Struct` and `jsonb`. A JSON array: `google.protobuf.ListValue`.
//!
//! A `Struct` has only doubles. When it is read, whole numbers up to 2^53 become integers again.
//! The transcoder refuses larger numbers, because they would be rounded silently.

use std::io::Write;

use diesel::{
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    pg::{Pg, PgValue},
    serialize::{self, IsNull, Output, ToSql},
    sql_types::Jsonb,
};
use prost::{
    DecodeError, Message,
    bytes::{Buf, BufMut},
    encoding::{
        self, DecodeContext, WireType, double, encoded_len_varint, int32, message, skip_field,
        string,
    },
};
use prost_types::{ListValue, Struct, Value as Wire, value::Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// The largest number up to which a double represents all whole numbers.
const EXACT: u64 = 1 << 53;

/// A JSON object with fields sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
#[serde(transparent)]
pub struct Json(pub Map<String, Value>);

impl Message for Json {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        to_wire(&self.0).encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return skip_field(wire_type, tag, buf, context);
        }
        let mut entry = Entry::default();
        message::merge(wire_type, &mut entry, buf, context)
            .map_err(|error| within(error, "Struct", "fields"))?;
        self.0.insert(entry.key, entry.value.0);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        fields_len(&self.0)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// An entry of `Struct.fields`, decoded without a `Struct` in between.
#[derive(Debug, Default)]
struct Entry {
    key: String,
    value: Element,
}

/// A `google.protobuf.Value`. Only for decoding.
#[derive(Debug, Default)]
struct Element(Value);

impl Message for Entry {
    fn encode_raw(&self, _: &mut impl BufMut) {}

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => string::merge(wire_type, &mut self.key, buf, context),
            2 => message::merge(wire_type, &mut self.value, buf, context),
            _ => skip_field(wire_type, tag, buf, context),
        }
    }

    fn encoded_len(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Message for Element {
    fn encode_raw(&self, _: &mut impl BufMut) {}

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        // A message is merged into an earlier message of the same field, as in prost.
        let before = std::mem::take(&mut self.0);
        let merged = match tag {
            1 => {
                let mut number = 0;
                let merged = int32::merge(wire_type, &mut number, buf, context);
                merged.map(|()| Value::Null)
            }
            2 => {
                let mut number = 0.0;
                let merged = double::merge(wire_type, &mut number, buf, context);
                merged.map(|()| from_double(number))
            }
            3 => {
                let mut text = String::new();
                let merged = string::merge(wire_type, &mut text, buf, context);
                merged.map(|()| Value::String(text))
            }
            4 => {
                let mut flag = false;
                let merged = encoding::bool::merge(wire_type, &mut flag, buf, context);
                merged.map(|()| Value::Bool(flag))
            }
            5 => {
                let mut object = Json(match before {
                    Value::Object(map) => map,
                    _ => Map::new(),
                });
                let merged = message::merge(wire_type, &mut object, buf, context);
                merged.map(|()| Value::Object(object.0))
            }
            6 => {
                let mut list = List(match before {
                    Value::Array(items) => items,
                    _ => Vec::new(),
                });
                let merged = message::merge(wire_type, &mut list, buf, context);
                merged.map(|()| Value::Array(list.0))
            }
            _ => {
                self.0 = before;
                return skip_field(wire_type, tag, buf, context);
            }
        };
        self.0 = merged.map_err(|error| within(error, "Value", "kind"))?;
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        self.0 = Value::Null;
    }
}

/// A JSON array: `google.protobuf.ListValue`. In a field, an empty list differs from an absent one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List(pub Vec<Value>);

impl Message for List {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        ListValue { values: self.0.iter().map(value_to_wire).collect() }.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return skip_field(wire_type, tag, buf, context);
        }
        let mut item = Element::default();
        message::merge(wire_type, &mut item, buf, context)
            .map_err(|error| within(error, "ListValue", "values"))?;
        self.0.push(item.0);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        list_len(&self.0)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Adds a field's name to an error, as prost's generated code does.
fn within(mut error: DecodeError, message: &'static str, field: &'static str) -> DecodeError {
    error.push(message, field);
    error
}

/// Returns the encoded length of a `Struct`, without making one.
fn fields_len(map: &Map<String, Value>) -> usize {
    let entry = |(key, value): (&String, &Value)| {
        let key = if key.is_empty() { 0 } else { delimited(key.len()) };
        delimited(key + delimited(value_len(value)))
    };
    map.iter().map(entry).sum()
}

fn list_len(items: &[Value]) -> usize {
    items.iter().map(|item| delimited(value_len(item))).sum()
}

fn value_len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 2,
        Value::Number(_) => 9,
        Value::String(text) => delimited(text.len()),
        Value::Array(items) => delimited(list_len(items)),
        Value::Object(map) => delimited(fields_len(map)),
    }
}

/// Returns the length of a field with `length` bytes, including its tag of one byte and its length.
fn delimited(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn to_wire(map: &Map<String, Value>) -> Struct {
    Struct { fields: map.iter().map(|(key, value)| (key.clone(), value_to_wire(value))).collect() }
}

fn value_to_wire(value: &Value) -> Wire {
    Wire {
        kind: Some(match value {
            Value::Null => Kind::NullValue(0),
            Value::Bool(flag) => Kind::BoolValue(*flag),
            Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
            Value::String(text) => Kind::StringValue(text.clone()),
            Value::Array(items) => {
                Kind::ListValue(ListValue { values: items.iter().map(value_to_wire).collect() })
            }
            Value::Object(map) => Kind::StructValue(to_wire(map)),
        }),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "whole and within 2^53"
)]
fn from_double(number: f64) -> Value {
    let whole = number as i64;
    if number.fract() == 0.0 && number.abs() <= EXACT as f64 {
        return Value::Number(whole.into());
    }
    // Only protobuf can contain a number that is not finite. A text with U+0000 replaces the
    // number. Texts must not contain U+0000: validation reports the field.
    Number::from_f64(number).map_or_else(|| NOT_FINITE.into(), Value::Number)
}

/// Replaces a number that JSON cannot represent: NaN or an infinity.
pub(crate) const NOT_FINITE: &str = "\0not a finite number";

impl FromSql<Jsonb, Pg> for Json {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        match <Value as FromSql<Jsonb, Pg>>::from_sql(value)? {
            Value::Object(map) => Ok(Self(map)),
            other => Err(format!("expected a JSON object, found {other}").into()),
        }
    }
}

impl ToSql<Jsonb, Pg> for Json {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&[1])?; // jsonb's format version
        serde_json::to_writer(out, &self.0)?;
        Ok(IsNull::No)
    }
}
