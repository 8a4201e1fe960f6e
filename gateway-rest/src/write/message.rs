//! Messages and their fields as JSON. Values of messages contain messages: these functions call one
//! another.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    free::{self, DEPTH},
    literal::{quoted, text},
    places::{FieldPosition, occurrences, only, with_places},
    scalar::{instant, mask, numeric},
};
use crate::{
    shape::{Cardinality, Field, Kind, Shape},
    time,
    wire::{Input, Malformed, Value, Wire},
};

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

fn value(out: &mut Vec<u8>, kind: &Kind, found: Value<'_>, depth: u8) -> Result<(), Malformed> {
    match found {
        Value::Number(number) => numeric(out, kind, number),
        Value::Bytes(bytes) => lengthy(out, kind, bytes, depth),
    }
}

fn lengthy(out: &mut Vec<u8>, kind: &Kind, bytes: &[u8], depth: u8) -> Result<(), Malformed> {
    let depth = depth + 1;
    if depth > DEPTH {
        return Err(Malformed);
    }
    match kind {
        Kind::String => text(out, std::str::from_utf8(bytes).map_err(|_| Malformed)?),
        Kind::Bytes => {
            let mut encoded = String::new();
            STANDARD.encode_string(bytes, &mut encoded);
            text(out, &encoded);
        }
        Kind::Json if bytes.is_empty() => out.extend_from_slice(b"null"),
        Kind::Json => out.extend_from_slice(bytes),
        Kind::Message(shape) => message(out, shape, bytes, depth)?,
        Kind::Struct => free::object(out, bytes, depth)?,
        Kind::Value => free::anything(out, bytes, depth)?,
        Kind::List => free::array(out, bytes, depth)?,
        Kind::Timestamp => {
            quoted(out, |out| time::format(out, instant(bytes)?).ok_or(Malformed))?;
        }
        Kind::Duration => {
            quoted(out, |out| time::format_duration(out, instant(bytes)?).ok_or(Malformed))?;
        }
        Kind::FieldMask => mask(out, bytes)?,
        Kind::Wrapper(inner) => wrapped(out, inner, bytes, depth)?,
        _ => return Err(Malformed),
    }
    Ok(())
}

fn wrapped(out: &mut Vec<u8>, inner: &Kind, bytes: &[u8], depth: u8) -> Result<(), Malformed> {
    let (mut input, mut last) = (Input(bytes), None);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let found = input.value(wire)?;
        if number == 1 && wire == Wire::of(inner) {
            last = Some(found);
        }
    }
    match last {
        Some(found) => value(out, inner, found, depth),
        None => default(out, inner),
    }
}
