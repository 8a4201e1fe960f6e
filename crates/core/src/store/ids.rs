//! Makes the ids of new records.

/// 32 lower-case hex digits of a UUID of version 7 (RFC 9562): the time in milliseconds first, so
/// that new rows are neighbours in an index.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
