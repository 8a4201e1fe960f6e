//! Errors of Postgres, as far as callers distinguish them.

use diesel::{
    ConnectionError,
    result::{DatabaseErrorInformation, DatabaseErrorKind, Error as Sql},
};
use diesel_async::pooled_connection::deadpool::PoolError;

use super::passing;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was stored, or it is unknown whether it was: callers may retry.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// Another row has this already: the unique constraint's name.
    #[error("conflict on `{0}`")]
    Conflict(String),
    /// The row refers to another that does not exist: the foreign key's name.
    #[error("`{0}` refers to no row")]
    Reference(String),
    /// Other rows still refer to this one: the foreign key's name.
    #[error("`{0}` still refers to the row")]
    InUse(String),
    /// A rule of the table forbids it (append-only, a check): the constraint's name or the reason.
    #[error("refused by the database: {0}")]
    Refused(String),
    /// The API key for which a read runs was revoked, or has expired.
    #[error("the API key is refused: it was revoked or has expired")]
    KeyEnded,
    /// No row where one was expected.
    #[error("no such row")]
    Missing,
    /// The database's URL, or its target, is wrong or lacks rights: for operators.
    #[error("{0}")]
    Address(String),
    /// A bug of the service.
    #[error("the database call failed: {0}")]
    Internal(String),
}

/// What `require_api_key` raises.
const KEY_ENDED: &str = "the API key has ended";

impl Error {
    /// What `authority_database_errors_total` counts it as.
    const CLASSES: [&'static str; 9] = [
        "unavailable",
        "conflict",
        "reference",
        "in_use",
        "refused",
        "key_ended",
        "missing",
        "address",
        "internal",
    ];

    fn class(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Conflict(_) => "conflict",
            Self::Reference(_) => "reference",
            Self::InUse(_) => "in_use",
            Self::Refused(_) => "refused",
            Self::KeyEnded => "key_ended",
            Self::Missing => "missing",
            Self::Address(_) => "address",
            Self::Internal(_) => "internal",
        }
    }

    fn counted(self) -> Self {
        counter(self.class()).increment(1);
        self
    }

    /// Every class exists as a metric from the start, so that its first increase is one.
    pub(super) fn count_from_zero() {
        for class in Self::CLASSES {
            counter(class).increment(0);
        }
    }

    /// Whether a statement was ended by a timeout: its own, or that of a lock.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Unavailable(message) if passing::is_timeout(message))
    }

    fn of(error: Sql) -> Self {
        use DatabaseErrorKind as Kind;
        match error {
            Sql::NotFound => Self::Missing,
            Sql::DatabaseError(kind, about) => match kind {
                Kind::UniqueViolation | Kind::ExclusionViolation => Self::Conflict(name(&*about)),
                Kind::ForeignKeyViolation if passing::is_still_named(about.message()) => {
                    Self::InUse(name(&*about))
                }
                Kind::ForeignKeyViolation => Self::Reference(name(&*about)),
                Kind::CheckViolation => Self::Refused(name(&*about)),
                Kind::RestrictViolation => Self::Refused(about.message().to_owned()),
                Kind::SerializationFailure
                | Kind::ReadOnlyTransaction
                | Kind::ClosedConnection
                | Kind::UnableToSendCommand => Self::Unavailable(about.message().to_owned()),
                _ if about.message() == KEY_ENDED => Self::KeyEnded,
                _ if passing::is_passing(about.message()) => {
                    Self::Unavailable(about.message().to_owned())
                }
                // Without DETAIL, which has values of rows.
                _ => Self::Internal(about.message().to_owned()),
            },
            // If a commit failed and could not be rolled back either, the commit's error is the cause.
            Sql::RollbackErrorOnCommit { commit_error, .. } => Self::of(*commit_error),
            Sql::BrokenTransactionManager => {
                Self::Unavailable("the transaction was lost with its connection".to_owned())
            }
            other => Self::Internal(other.to_string()),
        }
    }
}

fn counter(class: &'static str) -> metrics::Counter {
    metrics::counter!("authority_database_errors_total", "class" => class)
}

impl From<Sql> for Error {
    fn from(error: Sql) -> Self {
        Self::of(error).counted()
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        Self::Unavailable(error.to_string()).counted()
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::Unavailable(error.to_string()).counted()
    }
}

fn name(about: &(dyn DatabaseErrorInformation + Send + Sync)) -> String {
    about.constraint_name().unwrap_or_else(|| about.message()).to_owned()
}
