//! Agent Authority: decides whether an AI agent's action is permitted, says why, and proves it.
//!
//! ARCHITECTURE.md shows the rooms; `app.rs` builds them all.

pub mod app;
pub mod directory;
pub mod proof;
pub mod receipts;
pub mod telemetry;
pub mod transport;

// The rooms below the doors, under the same names as the doors': `crate::store`.
pub use authority_engine::{
    clock, compute, config, deadline, error, evidence, graph, identity, keys, shutdown, spending,
    store,
};
// The doors that are crates where they stand.
pub use {authority_registry as registry, authority_runtime as runtime};
