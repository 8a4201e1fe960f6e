//! The integration tests in one binary, with a module for each part of the service.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod architecture;
mod archive;
mod command_line;
mod console;
mod contract;
mod decision;
mod events;
mod evidence;
mod faults;
mod frontend;
mod fuzz;
mod identity;
mod keys;
mod mcp_gateway;
mod operations;
mod personal_data;
mod programme;
mod reality;
mod registry;
mod runtime;
mod schema;
mod store;
mod support;
mod transport;
mod worlds;
