//! The state registry: machines, the library that they come from, and the events of the records
//! that they govern.
//!
//! A move is asked for (`transition.rs`), judged by the machine (`step.rs`, pure) and written as an
//! event that is linked to the one before it (`event.rs`).

mod event;
mod library;
mod machine;
mod step;
mod transition;
