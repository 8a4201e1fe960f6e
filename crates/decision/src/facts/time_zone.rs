//! The offsets from UTC that a decision reads for time zones.
//!
//! Time zone data changes when a country changes its rules. Decisions therefore never read that
//! data: the offsets are looked up beforehand and sealed, and a replay reads the same offsets.

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};

use crate::moment;

/// The offset of a time zone at the time of the request.
///
/// The fields are in the order of RFC 8785, like a decision's facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneOffset {
    /// The version of the time zone data, such as `2026a`. It has no effect on the decision.
    pub data: String,
    /// The zone's IANA name.
    pub name: String,
    /// The next change of the offset, if a permission could be valid until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextOffset>,
    /// Seconds east of UTC.
    pub offset_seconds: i32,
}

/// A change of a zone's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextOffset {
    #[serde(with = "moment")]
    pub at: DateTime<Utc>,
    /// Seconds east of UTC.
    pub offset_seconds: i32,
}

impl ZoneOffset {
    /// Returns the offset at a time that is not before the request.
    pub(crate) fn at(&self, at: DateTime<Utc>) -> Option<FixedOffset> {
        let next = self.next.filter(|next| next.at <= at);
        FixedOffset::east_opt(next.map_or(self.offset_seconds, |next| next.offset_seconds))
    }
}

/// Returns the offsets of a zone.
pub(crate) fn named<'a>(zones: &'a [ZoneOffset], name: &str) -> Option<&'a ZoneOffset> {
    zones.iter().find(|zone| zone.name == name)
}
