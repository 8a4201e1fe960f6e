//! Converts fields of stored rows to values of facts.

use authority_decision::{moment::Window, pattern::Pattern};
use authority_model::wire::Time;
use chrono::DateTime;

/// Returns the readable patterns. An unreadable pattern covers no action.
pub(super) fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Returns the window; `None` if an end cannot be read.
pub(super) fn window(from: Option<Time>, until: Option<Time>) -> Option<Window> {
    let read = |end: Option<Time>| match end {
        None => Some(None),
        Some(time) => time.moment().map(Some),
    };
    Some(Window { from: read(from)?, until: read(until)? })
}

/// A period that is over at any time.
pub(super) const ENDED: Window = Window { from: None, until: Some(DateTime::UNIX_EPOCH) };

/// Reads a limit. A value that is out of range becomes the lowest limit; Postgres does not store
/// such values.
pub(super) fn per_second(limit: i32) -> u32 {
    u32::try_from(limit).unwrap_or(1).max(1)
}
