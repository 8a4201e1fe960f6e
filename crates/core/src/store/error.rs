//! Errors of Postgres, as far as callers distinguish them.

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
    /// Nothing was stored, or it is unknown whether it was: callers may retry.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// Postgres ended a statement by a timeout, its own or that of a lock: nothing was stored, and callers may retry.
    #[error("the database ended a statement: {0}")]
    Timeout(String),
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

impl Error {
    /// What `authority_database_errors_total` counts it as.
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

    /// Every class exists as a metric from the start, so that its first increase is one.
    pub(super) fn count_from_zero() {
        for class in Self::CLASSES {
            counter(class).increment(0);
        }
    }

    /// The error of a statement that deletes rows. Both ends of a foreign key have one SQLSTATE: only the
    /// statement tells which of them is violated.
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
            // If a commit failed and could not be rolled back either, the commit's error is the cause.
            Sql::RollbackErrorOnCommit { commit_error, .. } => Self::of(*commit_error),
            Sql::BrokenTransactionManager => {
                Self::Unavailable("the transaction was lost with its connection".to_owned())
            }
            other => Self::Internal(other.to_string()),
        }
    }

    /// What Postgres reported. Without DETAIL, which has values of rows.
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
            // What `require_api_key` raises; Postgres itself reports it of logins alone.
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
            // Without the pool's own words, which say nothing of the database.
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
