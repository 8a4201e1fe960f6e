//! Why there is no connection to a server.

use tokio_postgres::{Error, error::DbError};

/// Of one attempt, or of all.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", with_source(.0))]
    Failed(#[from] Error),
    #[error("it did not answer in time")]
    Silent,
}

impl Fault {
    /// What the server answered to the login.
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

/// tokio-postgres's message says what failed; the reason is in the error's source.
pub(super) fn with_source(fault: &Error) -> String {
    match std::error::Error::source(fault) {
        Some(source) => format!("{fault}: {source}"),
        None => fault.to_string(),
    }
}
