//! Values of one JSON token, from a body or from a URL.

use std::{borrow::Cow, fmt::Write as _};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{Reader, number, text::Stop};
use crate::{
    problems::Path,
    shape::Kind,
    time::{self, Instant},
    wire::{self, Wire},
};

/// Accepts both alphabets, with or without padding, as the protobuf JSON mapping requires.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

impl Reader<'_> {
    /// Reads a value without its tag.
    pub(super) fn value(&mut self, kind: &'static Kind, path: &Path<'_>) -> Result<(), Stop> {
        match kind {
            Kind::Message(shape) => {
                let start = wire::open(self.out);
                self.message(shape, path)?;
                wire::close(self.out, start);
                Ok(())
            }
            Kind::Wrapper(inner) => {
                let start = wire::open(self.out);
                wire::put_tag(self.out, 1, Wire::of(inner));
                self.value(inner, path)?;
                wire::close(self.out, start);
                Ok(())
            }
            Kind::Struct | Kind::Value | Kind::List => self.free(kind, path),
            Kind::Bool => self.boolean(path),
            Kind::Float | Kind::Double => self.double(kind, path),
            _ => match wire::range(kind) {
                Some(range) => self.integer(kind, range, path),
                None => self.string(kind, path),
            },
        }
    }

    fn boolean(&mut self, path: &Path<'_>) -> Result<(), Stop> {
        match self.text.peek() {
            b't' => self.text.word("true")?,
            b'f' => {
                self.out.push(0);
                return self.text.word("false");
            }
            _ => return self.mistyped("true or false", path),
        }
        self.out.push(1);
        Ok(())
    }

    fn double(&mut self, kind: &Kind, path: &Path<'_>) -> Result<(), Stop> {
        if !matches!(self.text.peek(), b'-' | b'0'..=b'9') {
            return self.mistyped("a number", path);
        }
        let literal = self.text.number()?;
        if put_double(kind, literal, self.out).is_none() {
            self.problems.add(path, TOO_LARGE);
        }
        Ok(())
    }

    fn integer(&mut self, kind: &Kind, range: (i128, i128), path: &Path<'_>) -> Result<(), Stop> {
        let in_text = self.text.peek() == b'"' && range.1 > i128::from(u32::MAX);
        let value = if in_text {
            self.text.string()?.parse().ok()
        } else if matches!(self.text.peek(), b'-' | b'0'..=b'9') {
            number::integer(self.text.number()?)
        } else {
            return self.mistyped("an integer", path);
        };
        match value {
            Some(value) if value >= range.0 && value <= range.1 => {
                wire::put_integer(self.out, kind, value);
            }
            _ => self.problems.add(path, integer_problem(range)),
        }
        Ok(())
    }

    fn string(&mut self, kind: &Kind, path: &Path<'_>) -> Result<(), Stop> {
        if self.text.peek() != b'"' {
            return self.mistyped("a string", path);
        }
        let text = self.text.string()?;
        if let Err(problem) = put_string(kind, &text, self.out) {
            self.problems.add(path, problem);
        }
        Ok(())
    }
}

const TOO_LARGE: &str = "is out of range for a number";
/// The problem of a text with U+0000. The service has the same text for gRPC.
pub const NUL: &str = "may not contain U+0000";

fn integer_problem((least, most): (i128, i128)) -> String {
    format!("must be an integer from {least} to {most}")
}

fn put_double(kind: &Kind, literal: &str, out: &mut Vec<u8>) -> Option<()> {
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
fn put_string(kind: &Kind, text: &str, out: &mut Vec<u8>) -> Result<(), Cow<'static, str>> {
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
