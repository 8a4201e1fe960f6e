//! Errors of Postgres, as distinguished by callers.

use ::deadpool::managed::TimeoutType;
use diesel::{
    ConnectionError,
    result::{DatabaseErrorInformation, DatabaseErrorKind as Kind, Error as Sql},
};
use diesel_async::pooled_connection::deadpool::PoolError;
use tokio_postgres::error::SqlState;

use super::sqlstate::{is_passing, is_timeout, sqlstate};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data was not stored, or it is unknown whether it was: callers may retry.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// A statement timeout or a lock timeout. The statement stored no data: callers may retry.
    #[error("the database ended a statement: {0}")]
    Timeout(String),
    /// Another row already has this value. Contains the name of the unique constraint.
    #[error("conflict on `{0}`")]
    Conflict(String),
    /// The row refers to a row that does not exist. Contains the name of the foreign key.
    #[error("`{0}` refers to no row")]
    Reference(String),
    /// Other rows still refer to this row. Contains the name of the foreign key.
    #[error("`{0}` still refers to the row")]
    InUse(String),
    /// A rule of the table forbids it (append-only, a check). Contains the constraint's name or the
    /// reason.
    #[error("refused by the database: {0}")]
    Refused(String),
    /// The API key of this read was revoked or has expired.
    #[error("the API key is refused: it was revoked or has expired")]
    KeyEnded,
    /// A row was expected but not found.
    #[error("no such row")]
    Missing,
    /// The database's URL or its target is wrong or lacks rights. The text is for operators.
    #[error("{0}")]
    Address(String),
    /// A bug of the service.
    #[error("the database call failed: {0}")]
    Internal(String),
}

impl Error {
    /// The `class` values in `authority_database_errors_total`.
    const CLASSES: [&'static str; 10] = [
        "unavailable",
        "timeout",
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
            Self::Timeout(_) => "timeout",
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

    /// Creates the metric of every class at start. Its first increase is then counted.
    pub(super) fn count_from_zero() {
        for class in Self::CLASSES {
            counter(class).increment(0);
        }
    }

    /// Converts the error of a statement that deletes rows.
    ///
    /// Both ends of a foreign key have the same SQLSTATE. Only the statement shows which end is
    /// violated.
    pub fn of_deletion(error: Sql) -> Self {
        match Self::of(error) {
            Self::Reference(name) => Self::InUse(name),
            other => other,
        }
        .counted()
    }

    /// Whether the same call may succeed later.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Timeout(_))
    }

    fn of(error: Sql) -> Self {
        match error {
            Sql::NotFound => Self::Missing,
            Sql::DatabaseError(kind, about) => Self::told(kind, &*about),
            // If a commit failed and its rollback failed too, the commit's error is the cause.
            Sql::RollbackErrorOnCommit { commit_error, .. } => Self::of(*commit_error),
            Sql::BrokenTransactionManager => {
                Self::Unavailable("the transaction was lost with its connection".to_owned())
            }
            other => Self::Internal(other.to_string()),
        }
    }

    /// Converts an error that Postgres reported. Leaves out DETAIL, which contains values of rows.
    fn told(kind: Kind, about: &(dyn DatabaseErrorInformation + Send + Sync)) -> Self {
        let text = about.message().to_owned();
        let name = || about.constraint_name().unwrap_or(about.message()).to_owned();
        match (kind, sqlstate(about)) {
            (Kind::UniqueViolation | Kind::ExclusionViolation, _) => Self::Conflict(name()),
            (Kind::ForeignKeyViolation, _) => Self::Reference(name()),
            (Kind::CheckViolation, _) => Self::Refused(name()),
            (Kind::RestrictViolation, _) => Self::Refused(text),
            (
                Kind::SerializationFailure
                | Kind::ReadOnlyTransaction
                | Kind::ClosedConnection
                | Kind::UnableToSendCommand,
                _,
            ) => Self::Unavailable(text),
            // Raised by `require_api_key`. Postgres itself reports it only for logins.
            (_, Some(SqlState::INVALID_AUTHORIZATION_SPECIFICATION)) => Self::KeyEnded,
            (_, Some(state)) if is_timeout(&state) => Self::Timeout(text),
            (_, Some(state)) if is_passing(&state) => Self::Unavailable(text),
            _ => Self::Internal(text),
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
        let text = match error {
            // Leaves out the pool's own text, which has no information about the database.
            PoolError::Backend(fault) => fault.to_string(),
            PoolError::Timeout(TimeoutType::Wait) => "no connection came free in time".to_owned(),
            PoolError::Timeout(_) => "it did not answer in time".to_owned(),
            fault => fault.to_string(),
        };
        Self::Unavailable(text).counted()
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::Unavailable(error.to_string()).counted()
    }
}
