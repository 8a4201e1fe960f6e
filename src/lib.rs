//! Agent Authority: decides whether an AI agent's action is permitted, explains why, and proves it.
//!
//! This crate is the server: `app/build.rs` builds it from the crates in `crates/`. See ARCHITECTURE.md
//! for an overview.

pub mod app;
pub mod directory;
pub mod receipts;
pub mod reference;
pub mod routes;
pub mod telemetry;
pub mod theme;
pub mod transport;
pub mod widgets;
