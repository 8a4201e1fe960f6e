//! Maps the errors of the crates below to client errors.

use authority_archive as archive;
use authority_evidence as evidence;
use authority_graph::{self as graph, policy_check};
use authority_keys as keys;
use authority_ledger::stored_packs::Altered;
use authority_store as store;

use super::{ApiError, ErrorCode};

/// Errors of reading archived data.
impl From<archive::Error> for ApiError {
    fn from(error: archive::Error) -> Self {
        match error {
            archive::Error::Store(error) => error.into(),
            error @ (archive::Error::NoArchive(_)
            | archive::Error::Elsewhere(_)
            | archive::Error::Foreign(_)
            | archive::Error::Busy(_)) => {
                tracing::error!(%error, "failed to read an archive");
                Self::new(ErrorCode::Unavailable, error.to_string())
            }
            error @ archive::Error::Bucket(_) => {
                tracing::error!(%error, "failed to read an archive");
                Self::new(ErrorCode::Unavailable, "the archive with this decision is unavailable")
            }
            error => {
                tracing::error!(%error, "failed to read an archive");
                Self::plain(ErrorCode::Internal)
            }
        }
    }
}

impl From<evidence::Error> for ApiError {
    fn from(error: evidence::Error) -> Self {
        tracing::error!(%error, "failed to create an evidence record");
        Self::plain(ErrorCode::Internal)
    }
}

/// The error was already logged where it was found.
impl From<Altered> for ApiError {
    fn from(_: Altered) -> Self {
        Self::plain(ErrorCode::Internal)
    }
}

impl From<graph::Error> for ApiError {
    fn from(error: graph::Error) -> Self {
        match error {
            graph::Error::Store(inner) => inner.into(),
            other => Self::new(ErrorCode::Unavailable, other.to_string()),
        }
    }
}

impl From<policy_check::Error> for ApiError {
    fn from(error: policy_check::Error) -> Self {
        match error {
            policy_check::Error::Store(error) => error.into(),
            policy_check::Error::Compute(error) => error.into(),
        }
    }
}

impl From<authority_crypto::Error> for ApiError {
    fn from(error: authority_crypto::Error) -> Self {
        tracing::error!(%error, "failed to use a key");
        Self::plain(ErrorCode::Internal)
    }
}

impl From<keys::Error> for ApiError {
    fn from(error: keys::Error) -> Self {
        match error {
            keys::Error::Store(error) => error.into(),
            keys::Error::KidTaken(_) | keys::Error::RotationOpen { .. } => {
                Self::new(ErrorCode::AlreadyExists, error.to_string())
            }
            keys::Error::NotFoundOrRevoked(_) => {
                Self::new(ErrorCode::NotFoundOrAlreadyRevoked, error.to_string())
            }
            keys::Error::NoSuchKey(kid) => Self::field("kid", format!("`{kid}` is unknown")),
            keys::Error::NotActive { .. } => {
                Self::new(ErrorCode::TransitionNotAllowed, error.to_string())
            }
            keys::Error::UnknownRotation(_) => Self::new(ErrorCode::NotFound, error.to_string()),
            keys::Error::RotationEnded { .. } => {
                Self::new(ErrorCode::RecordIsFinal, error.to_string())
            }
            // Internal key errors are logged for the operator. The caller gets no details.
            _ => {
                tracing::error!(%error, "failed to read or change the key inventory");
                Self::plain(ErrorCode::Internal)
            }
        }
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        let (code, about) = match &error {
            store::Error::Unavailable(reason) | store::Error::Timeout(reason) => {
                tracing::warn!(error = %reason, "failed to reach the database in time");
                return Self::plain(ErrorCode::Unavailable);
            }
            store::Error::Conflict(constraint) => (ErrorCode::AlreadyExists, constraint),
            store::Error::Reference(constraint) => (ErrorCode::InvalidRequest, constraint),
            store::Error::InUse(constraint) => (ErrorCode::InUse, constraint),
            store::Error::Missing => return Self::plain(ErrorCode::NotFound),
            store::Error::KeyEnded => {
                return Self::new(ErrorCode::Unauthenticated, error.to_string());
            }
            store::Error::Refused(reason)
            | store::Error::Address(reason)
            | store::Error::Internal(reason) => {
                tracing::error!(error = %reason, "failed to run a database call");
                return Self::plain(ErrorCode::Internal);
            }
        };
        Self::plain(code).with("constraint", about)
    }
}
