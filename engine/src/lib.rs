//! What decides, and what it stands on: the decision and its facts, the records and their proof,
//! who calls, the keys, the store. No gRPC method is here: those are the doors, in `../src`.
//!
//! A crate of its own so that an edit of a door compiles the doors alone.

pub mod clock;
pub mod compute;
pub mod config;
pub mod deadline;
pub mod error;
pub mod evidence;
pub mod graph;
pub mod identity;
pub mod keys;
pub mod shutdown;
pub mod spending;
pub mod store;
