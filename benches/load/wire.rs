//! Encodes and reads protobuf by hand: the messages of some measured services are not compiled
//! here. A request is encoded once, and only the decision of a response is read.

use prost::{decode_length_delimiter, encode_length_delimiter};

/// A message being encoded.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn text(self, field: u8, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u8, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds an entry to a field of type `map<string, google.protobuf.Value>`. A
    /// `google.protobuf.Struct` has such a field, with the number 1.
    pub(crate) fn entry(self, field: u8, key: &str, value: Value<'_>) -> Self {
        let value = match value {
            Value::Number(number) => {
                let mut message = Self(vec![2 << 3 | 1]);
                message.0.extend(number.to_le_bytes());
                message
            }
            Value::Text(text) => Self::default().text(3, text),
        };
        self.message(field, &Self::default().text(1, key).message(2, &value))
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: u8, bytes: &[u8]) -> Self {
        self.0.push(field << 3 | 2);
        // Writing to a vector cannot fail.
        let _ = encode_length_delimiter(bytes.len(), &mut self.0);
        self.0.extend(bytes);
        self
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Value<'text> {
    Number(f64),
    Text(&'text str),
}

/// Splits off the first field if it is length-delimited. Returns its number, its bytes and the
/// rest.
pub(crate) fn first(message: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, mut rest) = message.split_first()?;
    if tag & 7 != 2 {
        return None;
    }
    let length = decode_length_delimiter(&mut rest).ok()?;
    let (bytes, rest) = rest.split_at_checked(length)?;
    Some((tag >> 3, bytes, rest))
}
