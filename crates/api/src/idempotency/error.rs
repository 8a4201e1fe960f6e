//! The reason a request under an idempotency key is neither executed nor repeated.

use authority_keys as keys;
use authority_store as store;

use crate::error::{ApiError, ErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", ErrorCode::IdempotencyKeyReused.sentence())]
    Reused,
    #[error("{}", ErrorCode::IdempotencyInProgress.sentence())]
    InProgress,
    #[error("{}", ErrorCode::IdempotencyAnswerErased.sentence())]
    Erased,
    #[error("a stored response cannot be read: {0}")]
    Unreadable(#[from] prost::DecodeError),
    #[error("a response cannot be sealed or opened: {0}")]
    Sealing(#[from] keys::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Reused => Self::plain(ErrorCode::IdempotencyKeyReused),
            Error::InProgress => {
                Self::plain(ErrorCode::IdempotencyInProgress).with("retry_after", "1")
            }
            Error::Erased => Self::plain(ErrorCode::IdempotencyAnswerErased),
            Error::Store(error) => error.into(),
            Error::Unreadable(_) | Error::Sealing(_) => {
                tracing::error!(
                    %error,
                    "failed to seal or read a response under an idempotency key"
                );
                Self::plain(ErrorCode::Internal)
            }
        }
    }
}
