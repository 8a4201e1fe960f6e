//! Creates the ids of new rows, and parses the ids of stored rows.

use authority_ids::{Id, Kind, Unique};
use diesel::QueryResult;

/// Returns a version 7 UUID (RFC 9562).
///
/// The time in milliseconds comes first, which makes new rows adjacent in an index.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn new_id() -> Unique {
    Unique::from(uuid::Uuid::now_v7().as_u128())
}

/// Parses the id that a row contains as text.
///
/// # Errors
/// The text is not such an id, which means that this service did not write the row. The error is
/// the same as for a column of the wrong type.
pub fn row_id<K: Kind>(text: &str) -> QueryResult<Id<K>> {
    Id::parse(text).map_err(|why| {
        diesel::result::Error::DeserializationError(format!("the stored id `{text}` {why}").into())
    })
}
