//! Scalars from their texts, in a body, a URL or the key of a map.

use std::{borrow::Cow, fmt::Write as _};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::number;
use crate::{
    shape::Kind,
    time::{self, Instant},
    wire::{self, Wire},
};

/// Accepts both alphabets, with or without padding, as the protobuf JSON mapping requires.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

pub(super) const TOO_LARGE: &str = "is out of range for a number";
/// The problem of a text with U+0000. The service has the same text for gRPC.
pub const NUL: &str = "may not contain U+0000";

pub(super) fn integer_problem((least, most): (i128, i128)) -> String {
    format!("must be an integer from {least} to {most}")
}

pub(super) fn put_double(kind: &Kind, literal: &str, out: &mut Vec<u8>) -> Option<()> {
    if matches!(kind, Kind::Float) {
        let value = literal.parse().ok().filter(|value: &f32| value.is_finite())?;
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        out.extend_from_slice(&number::double(literal)?.to_le_bytes());
    }
    Some(())
}

/// Writes a scalar from a URL or a map's key, without its tag. The error describes its problem.
pub(crate) fn from_text(
    kind: &Kind,
    text: &str,
    out: &mut Vec<u8>,
) -> Result<(), Cow<'static, str>> {
    match kind {
        Kind::Bool => match text {
            "true" => out.push(1),
            "false" => out.push(0),
            _ => return Err("must be true or false".into()),
        },
        Kind::Float | Kind::Double => {
            // Rust would also parse `inf`, `nan` and `+1`, which are not JSON numbers.
            let plain = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'-' | b'.' | b'e' | b'E'));
            let put = plain.then(|| put_double(kind, text, out)).flatten();
            return put.ok_or_else(|| "must be a number".into());
        }
        Kind::Wrapper(inner) => {
            let start = wire::open(out);
            wire::put_tag(out, 1, Wire::of(inner));
            from_text(inner, text, out)?;
            wire::close(out, start);
        }
        Kind::Message(_) | Kind::Struct | Kind::Value | Kind::List => {
            return Err("is an object and cannot be given in a URL".into());
        }
        _ => match wire::range(kind) {
            None => return put_string(kind, text, out),
            Some(range) => {
                let plain = !text.starts_with('+');
                let value = text.parse().ok().filter(|v| plain && *v >= range.0 && *v <= range.1);
                let value = value.ok_or_else(|| integer_problem(range))?;
                wire::put_integer(out, kind, value);
            }
        },
    }
    Ok(())
}

/// Writes a value that is a string in JSON.
pub(super) fn put_string(
    kind: &Kind,
    text: &str,
    out: &mut Vec<u8>,
) -> Result<(), Cow<'static, str>> {
    match kind {
        Kind::Enum(words) => {
            let Some((number, _)) = words.iter().find(|(_, word)| *word == text) else {
                return Err(one_of(words).into());
            };
            wire::put_integer(out, kind, i128::from(*number));
        }
        Kind::Bytes => {
            let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
            let bytes = engine.decode(text).map_err(|_| "must be base64")?;
            wire::put_bytes(out, &bytes);
        }
        Kind::Timestamp => {
            let time = time::parse(text)
                .ok_or("must be a time of RFC 3339, such as `2026-01-31T09:30:00Z`")?;
            put_instant(out, time);
        }
        Kind::Duration => {
            let duration = time::parse_duration(text).ok_or("must be seconds such as `1.5s`")?;
            put_instant(out, duration);
        }
        Kind::FieldMask if !text.as_bytes().contains(&0) => {
            let start = wire::open(out);
            for path in text.split(',').filter(|path| !path.is_empty()) {
                wire::put_tag(out, 1, Wire::Length);
                wire::put_bytes(out, path.as_bytes());
            }
            wire::close(out, start);
        }
        _ => {
            if text.as_bytes().contains(&0) {
                return Err(NUL.into());
            }
            wire::put_bytes(out, text.as_bytes());
        }
    }
    Ok(())
}

fn one_of(words: &[(i32, &str)]) -> String {
    let mut problem = String::from("must be one of ");
    for (place, (_, word)) in words.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        let _ = write!(problem, "{comma}`{word}`");
    }
    problem
}

fn put_instant(out: &mut Vec<u8>, Instant { seconds, nanos }: Instant) {
    let start = wire::open(out);
    for (number, value) in [(1, seconds), (2, i64::from(nanos))] {
        if value != 0 {
            wire::put_tag(out, number, Wire::Varint);
            wire::put_integer(out, &Kind::Int64, i128::from(value));
        }
    }
    wire::close(out, start);
}
