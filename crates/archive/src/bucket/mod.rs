//! The store of archives: a folder, or a bucket that is compatible with S3.

#[cfg(not(feature = "storage"))]
mod absent;
mod error;
#[cfg(feature = "storage")]
mod folder;
mod listed;
#[cfg(feature = "storage")]
mod s3;
#[cfg(feature = "storage")]
mod store;

#[cfg(not(feature = "storage"))]
pub use absent::Bucket;
pub use error::Error;
pub use listed::Listed;
#[cfg(feature = "storage")]
pub use store::Bucket;
