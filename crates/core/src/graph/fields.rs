//! Members of stored rows as values of facts.

use authority_decision::{moment::Window, pattern::Pattern};
use authority_model::wire::Time;
use chrono::DateTime;

/// The patterns that can be read: one that cannot covers nothing.
pub(super) fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// `None` if an end of it cannot be read.
pub(super) fn window(from: Option<Time>, until: Option<Time>) -> Option<Window> {
    let read = |end: Option<Time>| match end {
        None => Some(None),
        Some(time) => time.moment().map(Some),
    };
    Some(Window { from: read(from)?, until: read(until)? })
}

/// A period that has always ended.
pub(super) const ENDED: Window = Window { from: None, until: Some(DateTime::UNIX_EPOCH) };
