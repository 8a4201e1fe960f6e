//! Errors of Postgres, as far as callers distinguish them.

use diesel::{
    ConnectionError,
    result::{DatabaseErrorInformation, DatabaseErrorKind, Error as Sql},
};
use diesel_async::pooled_connection::deadpool::PoolError;

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

impl From<Sql> for Error {
    fn from(error: Sql) -> Self {
        use DatabaseErrorKind as Kind;
        match error {
            Sql::NotFound => Self::Missing,
            Sql::DatabaseError(kind, about) => match kind {
                Kind::UniqueViolation | Kind::ExclusionViolation => Self::Conflict(name(&*about)),
                Kind::ForeignKeyViolation if is_still_named(&*about) => Self::InUse(name(&*about)),
                Kind::ForeignKeyViolation => Self::Reference(name(&*about)),
                Kind::CheckViolation => Self::Refused(name(&*about)),
                Kind::RestrictViolation => Self::Refused(about.message().to_owned()),
                Kind::SerializationFailure
                | Kind::ReadOnlyTransaction
                | Kind::ClosedConnection
                | Kind::UnableToSendCommand => Self::Unavailable(about.message().to_owned()),
                _ if about.message() == KEY_ENDED => Self::KeyEnded,
                _ if is_passing(about.message()) => Self::Unavailable(about.message().to_owned()),
                _ => Self::Internal(described(&*about)),
            },
            // If a commit failed and could not be rolled back either, the commit's error is the cause.
            Sql::RollbackErrorOnCommit { commit_error, .. } => Self::from(*commit_error),
            Sql::BrokenTransactionManager => {
                Self::Unavailable("the transaction was lost with its connection".to_owned())
            }
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

fn name(about: &(dyn DatabaseErrorInformation + Send + Sync)) -> String {
    about.constraint_name().unwrap_or_else(|| about.message()).to_owned()
}

fn described(about: &(dyn DatabaseErrorInformation + Send + Sync)) -> String {
    let details = about.details().map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{}{details}", about.message())
}

/// Both ends of a foreign key have the same code; the texts differ.
fn is_still_named(about: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    about.message().starts_with("update or delete on table")
}

/// diesel-async distinguishes few SQLSTATEs; these are the texts of those that may be retried (deadlock,
/// timeout, shutdown, start-up, recovery, too many connections, disk full).
fn is_passing(message: &str) -> bool {
    [
        "deadlock detected",
        "canceling statement due to",
        "terminating connection",
        "the database system is",
        "could not serialize access",
        "sorry, too many clients",
        "remaining connection slots",
        "could not extend file",
    ]
    .iter()
    .any(|start| message.starts_with(start))
}
