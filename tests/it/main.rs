//! The integration tests: one binary, a module a part of the service.
#![expect(clippy::unwrap_used, reason = "a failing test says where it failed")]

mod schema;
mod store;
mod support;
