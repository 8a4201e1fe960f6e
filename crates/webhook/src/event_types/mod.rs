//! The types of events, and the types that an endpoint selects.

mod event_type;
mod selection;
#[cfg(test)]
mod tests;

pub use event_type::{EventType, UnknownEventType, VERSION};
pub use selection::{MOST_PATTERNS, Selection, SelectionError};
