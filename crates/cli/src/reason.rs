//! The reason of a decision.

use authority_decision::Reason;

use crate::text::plain;

/// The code and its meaning.
pub(crate) fn why(code: &str) -> String {
    match Reason::from_word(code) {
        Some(reason) => format!("{code}: {}", reason.sentence()),
        None => plain(code),
    }
}
