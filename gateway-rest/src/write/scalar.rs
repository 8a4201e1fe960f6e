//! Single values as JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    DEPTH, free,
    literal::{display, double, float, integer, quoted, text},
    message,
};
use crate::{
    shape::Kind,
    time::{self, Instant},
    wire::{Input, Malformed, Value, Wire},
};

pub(super) fn value(
    out: &mut Vec<u8>,
    kind: &Kind,
    found: Value<'_>,
    depth: u8,
) -> Result<(), Malformed> {
    match found {
        Value::Number(number) => numeric(out, kind, number),
        Value::Bytes(bytes) => lengthy(out, kind, bytes, depth),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the wire carries the bits; the kind defines their meaning"
)]
fn numeric(out: &mut Vec<u8>, kind: &Kind, number: u64) -> Result<(), Malformed> {
    let zigzag = (number >> 1) as i64 ^ -((number & 1) as i64);
    match kind {
        Kind::Bool => out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
        Kind::Int32 | Kind::Sfixed32 => integer(out, i64::from(number as i32)),
        Kind::Sint32 => integer(out, i64::from(zigzag as i32)),
        Kind::Uint32 | Kind::Fixed32 => integer(out, i64::from(number as u32)),
        Kind::Int53 => integer(out, number as i64),
        Kind::Int64 | Kind::Sfixed64 => quoted(out, |out| integer(out, number as i64)),
        Kind::Sint64 => quoted(out, |out| integer(out, zigzag)),
        Kind::Uint64 | Kind::Fixed64 => quoted(out, |out| display(out, number)),
        Kind::Float => {
            let value = f32::from_bits(number as u32);
            if f64::from(value).fract() == 0.0 {
                double(out, f64::from(value));
            } else {
                float(out, value.is_finite().then_some(value), f64::from(value));
            }
        }
        Kind::Double => double(out, f64::from_bits(number)),
        Kind::Enum(words) => word(out, words, number as i32),
        _ => return Err(Malformed),
    }
    Ok(())
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

/// Writes the word of a number. A number without a word comes from a newer service and is shown as
/// a number.
fn word(out: &mut Vec<u8>, words: &[(i32, &str)], number: i32) {
    let found = words.binary_search_by_key(&number, |(number, _)| *number);
    match found.ok().and_then(|at| words.get(at)) {
        Some((_, word)) => text(out, word),
        None if number == 0 => out.extend_from_slice(b"null"),
        None => integer(out, number.into()),
    }
}

/// Reads the two integers of Timestamp and Duration.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the wire carries the bits"
)]
fn instant(bytes: &[u8]) -> Result<Instant, Malformed> {
    let (mut input, mut instant) = (Input(bytes), Instant { seconds: 0, nanos: 0 });
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        match (number, input.value(wire)?) {
            (1, Value::Number(seconds)) => instant.seconds = seconds as i64,
            (2, Value::Number(nanos)) => instant.nanos = nanos as i32,
            _ => {}
        }
    }
    Ok(instant)
}

fn mask(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Malformed> {
    let (mut input, mut paths) = (Input(bytes), String::new());
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        if let (1, Value::Bytes(path)) = (number, input.value(wire)?) {
            if !paths.is_empty() {
                paths.push(',');
            }
            paths.push_str(std::str::from_utf8(path).map_err(|_| Malformed)?);
        }
    }
    text(out, &paths);
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
        None => super::default(out, inner),
    }
}
