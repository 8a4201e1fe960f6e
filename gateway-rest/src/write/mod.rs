//! Writes protobuf bytes as JSON text, directly into one buffer, by [`Shape`].
//!
//! A message is scanned once to find the position of each field, then written in the proto's order.
//! The order on the wire may differ, and absent members are also written.

mod free;
mod literal;
mod scalar;

use std::ops::Range;

use crate::{
    shape::{Cardinality, Field, Kind, Shape},
    wire::{Input, Malformed, Value, Wire},
};
use literal::text;
use scalar::value;

/// The maximum nesting of messages; protects the stack against crafted bytes.
const DEPTH: u8 = 64;

/// The number of fields up to which a message needs no allocation.
const USUAL: usize = 48;

/// Writes a message as an object.
pub(crate) fn message(
    out: &mut Vec<u8>,
    shape: &Shape,
    proto: &[u8],
    depth: u8,
) -> Result<(), Malformed> {
    out.push(b'{');
    members(out, shape, proto, depth)?;
    out.push(b'}');
    Ok(())
}

/// Writes a message's members, without the braces.
pub(crate) fn members(
    out: &mut Vec<u8>,
    shape: &Shape,
    proto: &[u8],
    depth: u8,
) -> Result<(), Malformed> {
    with_places(shape, proto, |places| {
        for (position, (field, place)) in shape.fields.iter().zip(places).enumerate() {
            if position > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(field.name.as_bytes());
            out.extend_from_slice(b"\":");
            one(out, field, place, proto, depth)?;
        }
        Ok(())
    })
}

/// Returns a single field of a message; `None` if it is absent.
pub(crate) fn only<'a>(field: &Field, proto: &'a [u8]) -> Result<Option<Value<'a>>, Malformed> {
    let (mut input, mut found) = (Input(proto), None);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let value = input.value(wire)?;
        if number == field.number && wire == Wire::of(&field.kind) {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Writes only the value of the field at `position`.
pub(crate) fn field(
    out: &mut Vec<u8>,
    shape: &Shape,
    position: usize,
    proto: &[u8],
) -> Result<(), Malformed> {
    with_places(shape, proto, |places| {
        let field = shape.fields.get(position).ok_or(Malformed)?;
        one(out, field, places.get(position).ok_or(Malformed)?, proto, 0)
    })
}

/// The position of a field in its message.
#[derive(Clone, Copy, Default)]
struct FieldPosition {
    /// The number of occurrences.
    count: u32,
    /// The start of the tag of the first occurrence.
    start: u32,
    /// The start of the value of the last occurrence.
    value: u32,
    /// The end of the last occurrence.
    end: u32,
}

impl FieldPosition {
    fn range(from: u32, to: u32) -> Range<usize> {
        from as usize..to as usize
    }

    fn last(self) -> Range<usize> {
        Self::range(self.value, self.end)
    }

    fn all(self) -> Range<usize> {
        Self::range(self.start, self.end)
    }
}

fn with_places<T>(
    shape: &Shape,
    proto: &[u8],
    then: impl FnOnce(&[FieldPosition]) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let (mut usual, mut many);
    let places = if shape.fields.len() <= USUAL {
        usual = [FieldPosition::default(); USUAL];
        usual.get_mut(..shape.fields.len()).ok_or(Malformed)?
    } else {
        many = vec![FieldPosition::default(); shape.fields.len()];
        &mut many[..]
    };
    let at = |input: Input<'_>| u32::try_from(proto.len() - input.0.len()).map_err(|_| Malformed);
    let mut input = Input(proto);
    while !input.is_empty() {
        let start = at(input)?;
        let (number, wire) = input.tag()?;
        let value = at(input)?;
        input.value(wire)?;
        let place = shape.numbered(number).and_then(|position| {
            let field = shape.fields.get(position)?;
            fits(field, wire).then(|| places.get_mut(position))?
        });
        if let Some(place) = place {
            if place.count == 0 {
                place.start = start;
            }
            *place = FieldPosition { count: place.count + 1, value, end: at(input)?, ..*place };
        }
    }
    then(places)
}

/// Returns whether the wire type fits. A field with another wire type is skipped as unknown.
fn fits(field: &Field, wire: Wire) -> bool {
    wire == Wire::of(&field.kind) || (wire == Wire::Length && field.cardinality.is_list())
}

fn one(
    out: &mut Vec<u8>,
    field: &Field,
    place: &FieldPosition,
    proto: &[u8],
    depth: u8,
) -> Result<(), Malformed> {
    match field.cardinality {
        Cardinality::Optional | Cardinality::Bound if place.count == 0 => {
            out.extend_from_slice(b"null");
            Ok(())
        }
        Cardinality::Repeated | Cardinality::Bound => {
            out.push(b'[');
            if place.count > 0 {
                list(out, field, proto.get(place.all()).ok_or(Malformed)?, depth)?;
            }
            out.push(b']');
            Ok(())
        }
        Cardinality::Map => {
            let found = proto.get(place.all()).ok_or(Malformed)?;
            map(out, field, found, depth)
        }
        Cardinality::Single if place.count == 0 => default(out, &field.kind),
        Cardinality::Single | Cardinality::Optional => {
            if place.count > 1 && Wire::of(&field.kind) == Wire::Length {
                return merged(out, field, proto.get(place.all()).ok_or(Malformed)?, depth);
            }
            let last = proto.get(place.last()).ok_or(Malformed)?;
            let found = Input(last).value(Wire::of(&field.kind))?;
            value(out, &field.kind, found, depth)
        }
    }
}

/// Writes a field that occurs several times. The parts of a message are concatenated. For other
/// kinds, the last value counts.
fn merged(out: &mut Vec<u8>, field: &Field, proto: &[u8], depth: u8) -> Result<(), Malformed> {
    let is_message = !matches!(field.kind, Kind::String | Kind::Bytes | Kind::Json);
    let mut whole = Vec::new();
    occurrences(field, proto, |found| {
        if let Value::Bytes(bytes) = found {
            if !is_message {
                whole.clear();
            }
            whole.extend_from_slice(bytes);
        }
        Ok(())
    })?;
    value(out, &field.kind, Value::Bytes(&whole), depth)
}

/// Iterates over each occurrence of the field, in a part of a message.
fn occurrences<'a>(
    field: &Field,
    proto: &'a [u8],
    mut each: impl FnMut(Value<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut input = Input(proto);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let found = input.value(wire)?;
        if number == field.number && fits(field, wire) {
            each(found)?;
        }
    }
    Ok(())
}

fn list(out: &mut Vec<u8>, field: &Field, proto: &[u8], depth: u8) -> Result<(), Malformed> {
    let wire = Wire::of(&field.kind);
    let mut first = true;
    let mut item = |out: &mut Vec<u8>, found| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        value(out, &field.kind, found, depth)
    };
    occurrences(field, proto, |found| match found {
        Value::Bytes(packed) if wire != Wire::Length => {
            let mut packed = Input(packed);
            while !packed.is_empty() {
                let found = packed.value(wire)?;
                item(out, found)?;
            }
            Ok(())
        }
        found => item(out, found),
    })
}

/// Writes a map as an object with sorted names: equal maps become equal texts.
fn map(out: &mut Vec<u8>, field: &Field, proto: &[u8], depth: u8) -> Result<(), Malformed> {
    let Kind::Message(Shape { fields: [key, content], .. }) = &field.kind else {
        return Err(Malformed);
    };
    let mut entries = Vec::new();
    occurrences(field, proto, |found| {
        let Value::Bytes(entry) = found else { return Err(Malformed) };
        let mut name = Vec::new();
        match only(key, entry)? {
            Some(found) => value(&mut name, &key.kind, found, depth)?,
            None => default(&mut name, &key.kind)?,
        }
        if !name.starts_with(b"\"") {
            name.insert(0, b'"');
            name.push(b'"');
        }
        entries.push((name, entry));
        Ok(())
    })?;
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    out.push(b'{');
    let mut entries = entries.into_iter().peekable();
    while let Some((name, entry)) = entries.next() {
        // The sort is stable: the last of several equal names counts.
        if entries.peek().is_some_and(|(next, _)| *next == name) {
            continue;
        }
        out.extend_from_slice(&name);
        out.push(b':');
        match only(content, entry)? {
            Some(found) => value(out, &content.kind, found, depth)?,
            None if matches!(content.kind, Kind::Message(_)) => {
                value(out, &content.kind, Value::Bytes(&[]), depth)?;
            }
            None => default(out, &content.kind)?,
        }
        if entries.peek().is_some() {
            out.push(b',');
        }
    }
    out.push(b'}');
    Ok(())
}

/// Writes the default of an absent scalar.
fn default(out: &mut Vec<u8>, kind: &Kind) -> Result<(), Malformed> {
    match kind {
        Kind::String | Kind::Bytes => {
            text(out, "");
            Ok(())
        }
        _ if Wire::of(kind) == Wire::Length => {
            out.extend_from_slice(b"null");
            Ok(())
        }
        _ => value(out, kind, Value::Number(0), 0),
    }
}
