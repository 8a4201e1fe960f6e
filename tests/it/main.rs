//! The integration tests: one binary, a module a part of the service.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod architecture;
mod command_line;
mod decision;
mod fuzz;
mod identity;
mod keys;
mod registry;
mod schema;
mod store;
mod support;
mod transport;
mod worlds;
