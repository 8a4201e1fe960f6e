//! Tests the decision core against a second, naive evaluator, and tests properties of the core.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agree;
mod documented;
mod gate;
mod index_speed;
mod leaving_out;
mod local_time;
mod naive;
mod order;
mod permitted;
mod pinned;
mod policies;
mod reality;
mod reality_speed;
mod remedy;
mod templates;
mod tool_speed;
mod worlds;
