//! The ids of rows: new ones, and those that are read.

use authority_ids::{Id, Kind, Unique};
use diesel::QueryResult;

/// A version 7 UUID (RFC 9562). The time in milliseconds comes first, so that new rows are adjacent in an
/// index.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn new_id() -> Unique {
    Unique::from(uuid::Uuid::now_v7().as_u128())
}

/// The id that a row has as text.
///
/// # Errors
/// The row was not written by this service: it is as unreadable as one with a column of another type.
pub fn row_id<K: Kind>(text: &str) -> QueryResult<Id<K>> {
    Id::parse(text).map_err(|why| {
        diesel::result::Error::DeserializationError(format!("the stored id `{text}` {why}").into())
    })
}
