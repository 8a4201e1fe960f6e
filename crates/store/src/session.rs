//! Checks each session before the service uses it.
//!
//! Triggers announce changes of authority, the role separates tenants, and the search path resolves
//! names. A default of the database, of a role or of the server can change any of these without an
//! error.

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};

use super::error::Error;

/// Statements that fail unless the session's settings are safe.
///
/// `kind` is the kind of role that the session has taken, or `""` without a role. They also make
/// statements outside a transaction see the newest commits, as the fence requires.
pub(super) fn checked(kind: &str) -> String {
    let checks = include_str!("session.sql").replace("{kind}", kind);
    format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; {checks}")
}

/// Checks a connection that uses the login's own role: for migrations and inspections.
///
/// # Errors
/// [`Error::Address`] names the setting and the remedy.
pub(super) async fn check(db: &mut AsyncPgConnection) -> Result<(), Error> {
    db.batch_execute(&checked("")).await.map_err(|fault| match Error::from(fault) {
        // An operator must fix it.
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
