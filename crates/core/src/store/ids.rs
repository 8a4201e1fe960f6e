//! Makes the ids of new records.

use authority_ids::Unique;

/// A version 7 UUID (RFC 9562). The time in milliseconds comes first, so that new rows are adjacent in an
/// index.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn new_id() -> Unique {
    Unique::from(uuid::Uuid::now_v7().as_u128())
}
