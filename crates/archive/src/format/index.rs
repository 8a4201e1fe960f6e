//! The index of a part, in Parquet: the place of each decision and its search fields.
//!
//! Each part has its own index, which is written together with the part. Writing therefore needs
//! memory for only one part. Programs that read Parquet can read all indexes of a month at once:
//! `index-*.parquet`.

#[cfg(not(feature = "storage"))]
mod absent;
#[cfg(feature = "storage")]
mod parquet;
mod row;

#[cfg(not(feature = "storage"))]
pub use absent::{read, write};
#[cfg(feature = "storage")]
pub use parquet::{read, write};
pub use row::{About, IndexRow};
