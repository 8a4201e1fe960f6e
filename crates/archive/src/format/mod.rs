//! The files of an archive: their names, and how they are written and read. Without I/O.
//!
//! A month of a tenant is a folder `<slug>/<month>`. It has parts of some thousand decisions
//! (`entry.rs`, in frames, `frames.rs`), an index of each part (`index.rs`), versions of records,
//! changes to authority, and a signed manifest (`authority_evidence::archive`) that lists all of
//! them with their SHA-256.

pub mod entry;
pub mod frames;
pub mod index;
pub mod month;
pub mod names;
pub mod part;

/// Why a file of an archive cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it cannot be read: {0}")]
    Unreadable(&'static str),
    #[error("it is not the index of a part: {0}")]
    Index(String),
    #[error("it cannot be decompressed: {0}")]
    Frame(#[from] std::io::Error),
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Differs(String),
}

#[cfg(feature = "storage")]
impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Index(error.to_string())
    }
}
