//! Errors of records.

use authority_decision::facts::RebuildError;

/// Errors of writing or reading records.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Crypto(#[from] authority_crypto::Error),
    #[error("a part of the record does not serialise, or cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
    #[error(transparent)]
    Facts(#[from] RebuildError),
    #[error("it was decided under `{0}`, which this program does not know")]
    Semantics(String),
}
