//! Deliveries of events to webhook endpoints.
//!
//! 1. `fan_out.rs` moves an endpoint's cursor along its tenant's log. The events that the endpoint
//!    accepts (`acceptance.rs`) become rows of `webhook_deliveries`.
//! 2. `worker.rs` claims due deliveries (`candidates.rs`, `claim.rs`) into a queue in memory
//!    (`queue/`). When it is a delivery's turn (`turns.rs`, `places.rs`) and the database still
//!    permits it (`check.rs`), the worker sends it outside any transaction (`attempt.rs`,
//!    `client/`) and records the result (`record.rs`).
//! 3. `replay.rs` creates new deliveries of past events. `service/` implements the API.
//!
//! The rules are in the crate `authority-webhook`, which does no I/O. Any number of nodes can do
//! this work concurrently.

mod acceptance;
mod attempt;
mod beside;
mod breaker;
mod candidates;
mod chat;
mod check;
mod claim;
mod client;
mod deliveries;
mod endpoint;
mod fan_out;
mod job;
mod limited;
pub(crate) mod lost;
mod make;
mod metrics;
mod pace;
mod places;
mod push;
mod push_rules;
mod queue;
mod record;
mod replay;
mod service;
mod shared;
mod turns;
mod worker;

pub use deliveries::{Deliveries, Parts};
pub use service::TEST_RATE_LIMIT;
