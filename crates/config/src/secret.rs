//! A value that is never printed.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MASK: &str = "***";

/// Text that prints and serializes as `***`. Only [`Secret::reveal`] returns it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// Avoids serde's own error, which would quote the text of a wrong value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Text(String),
            Number(u64),
            Other(serde::de::IgnoredAny),
        }
        match Any::deserialize(deserializer)? {
            Any::Text(text) => Ok(Self(text)),
            Any::Number(number) => Ok(Self(number.to_string())),
            Any::Other(_) => Err(serde::de::Error::custom("is not text")),
        }
    }
}
