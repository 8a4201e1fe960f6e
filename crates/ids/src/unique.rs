//! The unique part of an id.

use std::fmt;

/// A number of 128 bits, shown in an id as 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique(u128);

impl From<u128> for Unique {
    fn from(number: u128) -> Self {
        Self(number)
    }
}

impl fmt::Display for Unique {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:032x}", self.0)
    }
}
