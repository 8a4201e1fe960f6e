//! The state registry: machines, their library, and the events of records.
//!
//! A move is requested (`transition.rs`), checked against the machine (`step.rs`, pure) and written
//! as an event that is linked to the previous event (`event.rs`).

mod event;
mod library;
mod machine;
mod step;
mod transition;
mod two_people;
