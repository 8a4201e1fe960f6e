//! Protobuf by hand: requests are encoded once, for services whose messages are not compiled here,
//! and only the verdict of a response is read.

use prost::{decode_length_delimiter, encode_length_delimiter};

/// A message being encoded.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn text(self, field: u8, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u8, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// An entry of `map<string, google.protobuf.Value>`: of a `google.protobuf.Struct`, field 1.
    pub(crate) fn entry(self, field: u8, key: &str, value: Value) -> Self {
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
        // A vector has room for any length.
        let _ = encode_length_delimiter(bytes.len(), &mut self.0);
        self.0.extend(bytes);
        self
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Value {
    Number(f64),
    Text(&'static str),
}

/// Splits off the first field, if it is length-delimited: its number, its bytes, the rest.
pub(crate) fn first(message: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, mut rest) = message.split_first()?;
    if tag & 7 != 2 {
        return None;
    }
    let length = decode_length_delimiter(&mut rest).ok()?;
    let (bytes, rest) = rest.split_at_checked(length)?;
    Some((tag >> 3, bytes, rest))
}
