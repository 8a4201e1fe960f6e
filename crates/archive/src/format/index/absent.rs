//! The index of a build without the feature `archive`: reading and writing are errors.

use bytes::Bytes;

use super::row::IndexRow;
use crate::format::Error;

/// # Errors
/// Always.
pub fn write(_: &[IndexRow], _: &str) -> Result<Vec<u8>, Error> {
    Err(no_feature())
}

/// # Errors
/// Always.
pub fn read(_: Bytes) -> Result<(Vec<IndexRow>, String), Error> {
    Err(no_feature())
}

fn no_feature() -> Error {
    Error::Index("this build has no indexes: build it with the feature `archive`".to_owned())
}
