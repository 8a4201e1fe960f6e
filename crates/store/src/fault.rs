//! The reason why a server cannot be reached.

use tokio_postgres::{Error, error::DbError};

/// The failure of one attempt, or of all attempts.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", with_source(.0))]
    Failed(#[from] Error),
    #[error("it did not answer in time")]
    Silent,
}

impl Fault {
    /// Returns the server's response to the login.
    pub(super) fn answer(&self) -> Option<&DbError> {
        match self {
            Self::Failed(error) => error.as_db_error(),
            Self::Silent => None,
        }
    }

    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Silent)
    }
}

/// Formats an error of tokio-postgres with its source, which contains the reason.
pub(super) fn with_source(fault: &Error) -> String {
    match std::error::Error::source(fault) {
        Some(source) => format!("{fault}: {source}"),
        None => fault.to_string(),
    }
}
