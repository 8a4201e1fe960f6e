//! The state registry: machines, the library that they come from, and the events of the records
//! that they govern.
//!
//! A move is requested (`transition.rs`), checked against the machine (`step.rs`, pure) and written as an
//! event linked to the previous one (`event.rs`).

mod event;
mod library;
mod machine;
mod step;
mod transition;
mod two_people;
