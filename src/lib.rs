//! Agent Authority: decides whether an AI agent's action is permitted, says why, and proves it.
//!
//! ARCHITECTURE.md shows the rooms; `app.rs` builds them all.

pub mod app;
pub mod clock;
pub mod config;
pub mod decision;
pub mod directory;
pub mod error;
pub mod evidence;
pub mod graph;
pub mod identity;
pub mod keys;
pub mod proof;
pub mod receipts;
pub mod registry;
pub mod runtime;
pub mod spending;
pub mod store;
pub mod telemetry;
pub mod transport;
