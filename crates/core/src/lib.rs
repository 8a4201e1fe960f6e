//! What every service stands on: the store, keys, the authority graph, decisions as they
//! are stored, counters, settings, background work. No service is here: those are crates of their
//! own, so that an edit of a handler compiles its crate alone.

pub mod clock;
pub mod compute;
pub mod config;
pub mod graph;
pub mod keys;
pub mod shutdown;
pub mod spending;
pub mod store;
pub mod stored_decisions;
pub mod worker;
