//! What only Postgres' message text tells: diesel-async keeps the SQLSTATE of few errors and hides the others.
//!
//! The texts are English on every connection: `connect.rs` makes sure of that at the start, or refuses the
//! database. Errors of connecting are told apart by their SQLSTATE.

/// Both ends of a foreign key have the same code; the texts differ.
pub(super) fn is_still_named(message: &str) -> bool {
    message.starts_with("update or delete on table")
}

/// Whether it may succeed later: deadlock, timeout, shutdown, start-up, recovery, too many connections, disk
/// full.
pub(super) fn is_passing(message: &str) -> bool {
    is_timeout(message)
        || [
            "deadlock detected",
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

/// A statement that was cancelled, or waited too long for a lock.
pub(super) fn is_timeout(message: &str) -> bool {
    message.starts_with("canceling statement due to")
}
