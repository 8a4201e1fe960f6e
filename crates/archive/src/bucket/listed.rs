//! An object in a list.

use chrono::{DateTime, Utc};

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// The time of the last write, by the store's clock.
    pub modified: DateTime<Utc>,
    pub bytes: u64,
}
