//! A JSON object: `google.protobuf.Struct` and `jsonb`.
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
    encoding::{DecodeContext, WireType},
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
        let mut part = Struct::default();
        part.merge_field(tag, wire_type, buf, context)?;
        self.0.extend(part.fields.into_iter().map(|(key, value)| (key, from_wire(value))));
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        to_wire(&self.0).encoded_len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
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

fn from_wire(value: Wire) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::NumberValue(number)) => from_double(number),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(from_wire).collect(),
        Some(Kind::StructValue(map)) => {
            Value::Object(map.fields.into_iter().map(|(k, v)| (k, from_wire(v))).collect())
        }
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
    // Only protobuf can contain a number that is not finite. Its replacement contains U+0000, which
    // texts must not contain: validation therefore reports the field.
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
