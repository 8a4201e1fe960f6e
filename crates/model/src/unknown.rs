//! Finds unknown fields and enum numbers in the bytes of a request.
//!
//! Protobuf drops them silently. If a newer client sends a field that restricts an action, the
//! action would be permitted without the restriction. Methods that decide or write therefore refuse
//! unknown fields, as REST does. The check makes one pass over the tags, uses tables made from the
//! descriptors, and doesn't allocate.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The fields of a message.
pub(crate) struct Known {
    /// Sorted by number.
    pub(crate) fields: &'static [KnownField],
}

pub(crate) struct KnownField {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) holds: Holds,
}

pub(crate) enum Holds {
    /// A value without fields of its own.
    Value,
    /// An enum, with its known numbers.
    Words(&'static [i32]),
    Message(&'static Known),
}

/// The maximum depth of nested messages, including the request itself. prost decodes no more than
/// 100 levels.
const DEPTH: u8 = 101;

/// An unknown field or number, with the names of the enclosing fields, innermost first.
#[derive(Debug, PartialEq, Eq)]
struct Unknown {
    within: Vec<&'static str>,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Field(u64),
    Word(i32),
    /// The bytes do not have the form of this message.
    Malformed,
}

/// The error is boxed to keep the usual result small.
type Checked<T> = Result<T, Box<Unknown>>;

impl What {
    #[cold]
    fn here<T>(self) -> Checked<T> {
        Err(Box::new(Unknown { within: Vec::new(), what: self }))
    }
}

impl Known {
    /// Refuses bytes with an unknown field or enum number. The caller must have decoded the bytes
    /// first.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), Status> {
        self.scan(bytes, DEPTH).map_err(|found| refusal(*found))
    }

    fn scan(&self, mut bytes: &[u8], depth: u8) -> Checked<()> {
        let Some(depth) = depth.checked_sub(1) else { return What::Malformed.here() };
        while !bytes.is_empty() {
            let tag = varint(&mut bytes)?;
            let Some(field) = self.numbered(tag >> 3) else { return What::Field(tag >> 3).here() };
            match (tag & 7, &field.holds) {
                (0, Holds::Words(words)) => word(words, varint(&mut bytes)?, field.name)?,
                (0, _) => drop(varint(&mut bytes)?),
                (1, _) => drop(take(&mut bytes, 8)?),
                (5, _) => drop(take(&mut bytes, 4)?),
                (2, holds) => {
                    let length = varint(&mut bytes)?;
                    let mut value = take(&mut bytes, length)?;
                    match holds {
                        Holds::Value => {}
                        Holds::Message(inner) => {
                            inner.scan(value, depth).map_err(below(field.name))?;
                        }
                        Holds::Words(words) => {
                            while !value.is_empty() {
                                word(words, varint(&mut value)?, field.name)?;
                            }
                        }
                    }
                }
                _ => return What::Malformed.here(),
            }
        }
        Ok(())
    }

    fn numbered(&self, number: u64) -> Option<&'static KnownField> {
        // Most messages number their fields 1, 2, 3, … in order. The index of a field is then its
        // number minus one.
        let guess = usize::try_from(number).ok()?.checked_sub(1)?;
        let guessed = self.fields.get(guess).filter(|field| u64::from(field.number) == number);
        guessed.or_else(|| {
            let at = self.fields.binary_search_by_key(&number, |field| field.number.into());
            self.fields.get(at.ok()?)
        })
    }
}

/// Adds the name of the field that encloses an unknown field.
fn below(member: &'static str) -> impl FnOnce(Box<Unknown>) -> Box<Unknown> {
    move |mut found| {
        found.within.push(member);
        found
    }
}

/// Reads an enum's number. Truncates it to 32 bits, as prost does.
#[expect(clippy::cast_possible_truncation, reason = "as prost reads it")]
fn word(words: &[i32], number: u64, member: &'static str) -> Checked<()> {
    let number = number as i32;
    if words.contains(&number) {
        return Ok(());
    }
    What::Word(number).here().map_err(below(member))
}

fn varint(bytes: &mut &[u8]) -> Checked<u64> {
    // Most numbers are encoded in one byte.
    match bytes.split_first() {
        Some((byte, rest)) if *byte < 0x80 => {
            *bytes = rest;
            Ok((*byte).into())
        }
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &mut &[u8]) -> Checked<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let Some((byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    What::Malformed.here()
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Checked<&'a [u8]> {
    let length = usize::try_from(length).ok();
    let Some((value, rest)) = length.and_then(|length| bytes.split_at_checked(length)) else {
        return What::Malformed.here();
    };
    *bytes = rest;
    Ok(value)
}

fn refusal(Unknown { within, what }: Unknown) -> Status {
    let member = within.iter().rev().copied().collect::<Vec<_>>().join(".");
    let problem = match what {
        What::Field(number) => format!("has the unknown field {number}"),
        What::Word(number) => format!("has the unknown number {number} of its enum"),
        What::Malformed => "is malformed".to_owned(),
    };
    let mut details = ErrorDetails::with_error_info("invalid_request", "authority", []);
    details.add_bad_request_violation(&member, &problem);
    let place = if member.is_empty() { "it".to_owned() } else { format!("`{member}`") };
    let message = format!(
        "the request is invalid: {place} {problem}; this version of the service refuses fields that it does \
         not know, since they might restrict the request (`features` of `GET /` lists the optional fields)"
    );
    Status::with_error_details(Code::InvalidArgument, message, details)
}

#[cfg(test)]
mod tests;
