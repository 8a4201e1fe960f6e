//! Makes the ids of new records.

/// 32 lower-case hex digits of a version 7 UUID (RFC 9562). The time in milliseconds comes first,
/// so that new rows are adjacent in an index.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
