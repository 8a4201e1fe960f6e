//! JSON strings and numbers.

use std::io::Write as _;

pub(super) fn quoted<T>(out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    out.push(b'"');
    let done = inner(out);
    out.push(b'"');
    done
}

pub(super) fn display(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value}");
}

pub(super) fn integer(out: &mut Vec<u8>, value: i64) {
    display(out, value);
}

/// Writes integers as integers, and NaN and infinities as the strings of the protobuf JSON mapping.
pub(super) fn double(out: &mut Vec<u8>, value: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "integral and at most 2^53")]
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        integer(out, value as i64);
    } else {
        float(out, value.is_finite().then_some(value), value);
    }
}

pub(super) fn float(out: &mut Vec<u8>, finite: Option<impl serde::Serialize>, value: f64) {
    match finite {
        Some(finite) => {
            // Writing to a Vec, and writing a finite number, cannot fail.
            let _ = serde_json::to_writer(out, &finite);
        }
        None if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        None if value > 0.0 => out.extend_from_slice(b"\"Infinity\""),
        None => out.extend_from_slice(b"\"-Infinity\""),
    }
}

/// Writes a JSON string.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else { break };
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            _ => 0,
        };
        if short == 0 {
            let low = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low]);
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
