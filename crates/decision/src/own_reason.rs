//! A tenant's own reason code: `x_` and one to 62 lower-case letters, digits and underscores.
//!
//! The word is stored inline, which makes a reason `Copy` and independent of a policy's text.

use std::{cmp::Ordering, fmt};

const PREFIX: &str = "x_";
const LONGEST: usize = 64;

/// A reason code defined by a policy's author.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnReason {
    length: u8,
    bytes: [u8; LONGEST],
}

impl OwnReason {
    /// The form, as a regular expression.
    pub const PATTERN: &'static str = "^x_[a-z0-9_]{1,62}$";

    /// Returns `None` if the word does not have this form.
    pub fn of(word: &str) -> Option<Self> {
        let rest = word.strip_prefix(PREFIX)?;
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if rest.is_empty() || word.len() > LONGEST || !rest.bytes().all(plain) {
            return None;
        }
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..word.len())?.copy_from_slice(word.as_bytes());
        Some(Self { length: word.len().try_into().ok()?, bytes })
    }

    pub fn word(&self) -> &str {
        let bytes = self.bytes.get(..self.length.into()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or(PREFIX)
    }
}

impl fmt::Debug for OwnReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.word(), to)
    }
}

impl Ord for OwnReason {
    fn cmp(&self, other: &Self) -> Ordering {
        self.word().cmp(other.word())
    }
}

impl PartialOrd for OwnReason {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_its_form_only() {
        let longest = format!("x_{}", "a".repeat(62));
        for word in ["x_a", "x_four_eyes_2", longest.as_str()] {
            assert_eq!(OwnReason::of(word).unwrap().word(), word);
        }
        for word in ["", "x_", "x", "y_a", "x_A", "x_a-b", "x_é", "x_a b", &format!("{longest}a")]
        {
            assert_eq!(OwnReason::of(word), None, "{word}");
        }
    }
}
