//! Formats times and texts for receipts.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use authority_decision::{hidden::is_hidden, moment};

pub(super) struct Moment {
    /// RFC 3339.
    pub(super) exact: String,
    /// The time for people.
    pub(super) shown: String,
}

impl Moment {
    pub(super) fn of(at: DateTime<Utc>) -> Self {
        let shown = at.format("%-d %B %Y, %H:%M:%S UTC").to_string();
        Self { exact: moment::text(at), shown }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|at| Self::of(at.to_utc()))
    }
}

/// Returns the text with hidden characters as JSON escapes.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}"); // writing to a String cannot fail
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}
