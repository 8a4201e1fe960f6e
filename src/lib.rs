//! Agent Authority: decides whether an AI agent's action is permitted, says why, and proves it.
//!
//! The server: what it is made of stands in `crates/`, and `app.rs` builds it all. ARCHITECTURE.md
//! shows the whole.

pub mod app;
pub mod directory;
pub mod receipts;
pub mod reference;
pub mod routes;
pub mod telemetry;
pub mod transport;
pub mod widgets;
