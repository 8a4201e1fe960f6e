//! The limits of one transaction.

/// The most rows that one transaction deletes.
pub(super) const MOST: i64 = 2_000;
