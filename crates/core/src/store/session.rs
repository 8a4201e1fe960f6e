//! What each session of the service must be like before it is used.
//!
//! Triggers announce changes of authority, rows are kept apart by the role, and names are found by the search path. A
//! default of the database, of a role or of the server can change each of these, and nothing would be refused then.

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};

use super::Error;

/// Statements that fail unless the session is in order; `kind` is that of the role that it has taken, `""` if none.
/// What runs outside a transaction of its own sees what others have just committed, as the fence must.
pub(super) fn checked(kind: &str) -> String {
    let checks = include_str!("session.sql").replace("{kind}", kind);
    format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; {checks}")
}

/// Checks a connection of the login itself: for migrations and inspections.
///
/// # Errors
/// [`Error::Address`] names the setting and the remedy.
pub(super) async fn check(db: &mut AsyncPgConnection) -> Result<(), Error> {
    db.batch_execute(&checked("")).await.map_err(|fault| match Error::from(fault) {
        // An operator must act.
        Error::Internal(told) => Error::Address(told),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_role_is_part_of_the_check() {
        assert!(checked("tenant").contains("kind text := 'tenant';"));
        assert!(!checked("").contains("{kind}"));
    }
}
