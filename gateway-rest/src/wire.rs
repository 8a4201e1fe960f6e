//! The protobuf wire format (<https://protobuf.dev/programming-guides/encoding>), as far as the
//! gateway needs it.

use crate::shape::Kind;

/// The bytes are not the expected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint = 0,
    Eight = 1,
    Length = 2,
    Four = 5,
}

impl Wire {
    pub(crate) fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Bool
            | Kind::Int32
            | Kind::Sint32
            | Kind::Uint32
            | Kind::Int64
            | Kind::Sint64
            | Kind::Uint64
            | Kind::Int53
            | Kind::Enum(_) => Self::Varint,
            Kind::Sfixed32 | Kind::Fixed32 | Kind::Float => Self::Four,
            Kind::Sfixed64 | Kind::Fixed64 | Kind::Double => Self::Eight,
            _ => Self::Length,
        }
    }
}

// ---- Writing

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

pub(crate) fn put_tag(out: &mut Vec<u8>, number: u32, wire: Wire) {
    put_varint(out, u64::from(number) << 3 | wire as u64);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Begins a length-delimited value; [`close`] writes the length once it is known.
pub(crate) fn open(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// Ends a value that [`open`] began. One byte is reserved for the length; a longer length moves the
/// value.
pub(crate) fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len().saturating_sub(start);
    let mut prefix = [0; 10];
    let (mut rest, mut count) = (length, 0);
    for slot in &mut prefix {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        count += 1;
        *slot = if rest == 0 { low & 0x7f } else { low | 0x80 };
        if rest == 0 {
            break;
        }
    }
    let more = count - 1;
    if more > 0 {
        out.resize(out.len() + more, 0);
        out.copy_within(start..start + length, start + more);
    }
    let from = start.saturating_sub(1);
    for (slot, byte) in out.iter_mut().skip(from).zip(prefix).take(count) {
        *slot = byte;
    }
}

/// An integer known to be in [`range`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller checked the range; negative int32 are sign-extended on the wire"
)]
pub(crate) fn put_integer(out: &mut Vec<u8>, kind: &Kind, value: i128) {
    match kind {
        Kind::Sint32 | Kind::Sint64 => {
            let value = value as i64;
            put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
        }
        Kind::Sfixed32 | Kind::Fixed32 => out.extend_from_slice(&(value as u32).to_le_bytes()),
        Kind::Sfixed64 | Kind::Fixed64 => out.extend_from_slice(&(value as u64).to_le_bytes()),
        _ => put_varint(out, value as u64),
    }
}

/// The largest integer up to which all integers are exactly doubles (RFC 8259, section 6).
const MOST_OF_53_BITS: i128 = (1 << 53) - 1;

/// Returns the minimum and maximum of an integer kind; `None` for other kinds.
pub(crate) fn range(kind: &Kind) -> Option<(i128, i128)> {
    Some(match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => (i32::MIN.into(), i32::MAX.into()),
        Kind::Uint32 | Kind::Fixed32 => (0, u32::MAX.into()),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => (i64::MIN.into(), i64::MAX.into()),
        Kind::Uint64 | Kind::Fixed64 => (0, u64::MAX.into()),
        Kind::Int53 => (-MOST_OF_53_BITS, MOST_OF_53_BITS),
        _ => return None,
    })
}

// ---- Reading

/// One field's value on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The unread remainder of a message.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(Malformed);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// Reads a field's number and wire type. Groups, which proto3 lacks, are malformed.
    pub(crate) fn tag(&mut self) -> Result<(u32, Wire), Malformed> {
        let tag = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Eight,
            2 => Wire::Length,
            5 => Wire::Four,
            _ => return Err(Malformed),
        };
        if tag >> 3 == 0 { Err(Malformed) } else { Ok((tag >> 3, wire)) }
    }

    pub(crate) fn value(&mut self, wire: Wire) -> Result<Value<'a>, Malformed> {
        Ok(match wire {
            Wire::Varint => Value::Number(self.varint()?),
            Wire::Eight => Value::Number(u64::from_le_bytes(self.fixed()?)),
            Wire::Four => Value::Number(u32::from_le_bytes(self.fixed()?).into()),
            Wire::Length => Value::Bytes(self.bytes()?),
        })
    }
}
