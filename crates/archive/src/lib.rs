//! Months of decisions as files outside the database.
//!
//! `format/` says what the files are, and is pure.

pub mod format;
