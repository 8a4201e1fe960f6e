//! Personal data: its export and its erasure.
//!
//! A request names a person in one way. The person is then found by all of their names
//! (`person.rs`). An erasure processes decisions, facts and history page by page (`pages.rs`), and
//! then all other tables in one transaction (`tables.rs`). That transaction also stores the
//! erasure. Every listed erasure is therefore complete. An interrupted erasure is not listed and
//! can be repeated. A legal hold prevents an erasure (`hold.rs`).

mod consent;
mod erase;
mod erasures;
mod export;
mod handlers;
mod hold;
mod pages;
mod person;
mod retention;
mod service;
mod tables;

pub use handlers::PersonalData;
pub use retention::worker as erase_by_age;
