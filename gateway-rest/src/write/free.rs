//! `google.protobuf.Struct`, `Value` and `ListValue` as JSON.

use super::literal::{double, text};
use crate::wire::{Input, Malformed, Value};

/// The maximum nesting of messages and of free-form values; protects the stack against crafted bytes.
pub(super) const DEPTH: u8 = 64;

/// Writes a Struct with sorted names: equal objects become equal texts.
pub(super) fn object(out: &mut Vec<u8>, bytes: &[u8], depth: u8) -> Result<(), Malformed> {
    if is_sorted(bytes)? {
        out.push(b'{');
        let mut first = true;
        each(bytes, |name, value| {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            member(out, name, value, depth)
        })?;
        out.push(b'}');
        return Ok(());
    }
    let mut entries = Vec::new();
    each(bytes, |name, value| {
        entries.push((name, value));
        Ok(())
    })?;
    entries.sort_by_key(|(name, _)| *name);
    out.push(b'{');
    let mut entries = entries.into_iter().peekable();
    while let Some((name, value)) = entries.next() {
        let next = entries.peek().map(|(next, _)| *next);
        // The sort is stable: the last of several equal names counts.
        if next == Some(name) {
            continue;
        }
        member(out, name, value, depth)?;
        if next.is_some() {
            out.push(b',');
        }
    }
    out.push(b'}');
    Ok(())
}

fn is_sorted(bytes: &[u8]) -> Result<bool, Malformed> {
    let (mut before, mut sorted) = (None, true);
    each(bytes, |name, _| {
        sorted &= before.is_none_or(|before| before < name);
        before = Some(name);
        Ok(())
    })?;
    Ok(sorted)
}

/// Calls a function for each entry of `map<string, Value> fields = 1`.
fn each<'a>(
    bytes: &'a [u8],
    mut then: impl FnMut(&'a str, &'a [u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut input = Input(bytes);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let (1, Value::Bytes(entry)) = (number, input.value(wire)?) else { continue };
        let (mut entry, mut name, mut value): (_, &[u8], &[u8]) = (Input(entry), &[], &[]);
        while !entry.is_empty() {
            let (number, wire) = entry.tag()?;
            match (number, entry.value(wire)?) {
                (1, Value::Bytes(bytes)) => name = bytes,
                (2, Value::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        then(std::str::from_utf8(name).map_err(|_| Malformed)?, value)?;
    }
    Ok(())
}

fn member(out: &mut Vec<u8>, name: &str, value: &[u8], depth: u8) -> Result<(), Malformed> {
    text(out, name);
    out.push(b':');
    anything(out, value, depth)
}

/// Writes a Value: the last member of its oneof.
pub(super) fn anything(out: &mut Vec<u8>, bytes: &[u8], depth: u8) -> Result<(), Malformed> {
    let depth = depth + 1;
    if depth > DEPTH {
        return Err(Malformed);
    }
    let (mut input, mut last) = (Input(bytes), None);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let value = input.value(wire)?;
        if number <= 6 {
            last = Some((number, value));
        }
    }
    match last {
        None | Some((1, Value::Number(_))) => out.extend_from_slice(b"null"),
        Some((2, Value::Number(bits))) => double(out, f64::from_bits(bits)),
        Some((3, Value::Bytes(bytes))) => {
            text(out, std::str::from_utf8(bytes).map_err(|_| Malformed)?);
        }
        Some((4, Value::Number(flag))) => {
            out.extend_from_slice(if flag == 0 { b"false" } else { b"true" });
        }
        Some((5, Value::Bytes(bytes))) => object(out, bytes, depth)?,
        Some((6, Value::Bytes(bytes))) => array(out, bytes, depth)?,
        Some(_) => return Err(Malformed),
    }
    Ok(())
}

pub(super) fn array(out: &mut Vec<u8>, bytes: &[u8], depth: u8) -> Result<(), Malformed> {
    out.push(b'[');
    let (mut input, mut first) = (Input(bytes), true);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let (1, Value::Bytes(item)) = (number, input.value(wire)?) else { continue };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        anything(out, item, depth)?;
    }
    out.push(b']');
    Ok(())
}
