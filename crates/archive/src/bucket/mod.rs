//! The store of archives: a folder, or a bucket that is compatible with S3.

#[cfg(not(feature = "storage"))]
mod absent;
mod error;
#[cfg(feature = "storage")]
mod folder;
#[cfg(feature = "storage")]
mod s3;
#[cfg(feature = "storage")]
mod store;

use chrono::{DateTime, Utc};

#[cfg(not(feature = "storage"))]
pub use absent::Bucket;
pub use error::Error;
#[cfg(feature = "storage")]
pub use store::Bucket;

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// The time of the last write, by the store's clock.
    pub modified: DateTime<Utc>,
    pub bytes: u64,
}
