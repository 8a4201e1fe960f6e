//! Single values as JSON.

use super::literal::{display, double, float, integer, quoted, text};
use crate::{
    shape::Kind,
    time::Instant,
    wire::{Input, Malformed, Value},
};

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the wire carries the bits; the kind defines their meaning"
)]
pub(super) fn numeric(out: &mut Vec<u8>, kind: &Kind, number: u64) -> Result<(), Malformed> {
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
pub(super) fn instant(bytes: &[u8]) -> Result<Instant, Malformed> {
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

pub(super) fn mask(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Malformed> {
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
