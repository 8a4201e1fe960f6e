//! The integration tests: one binary, a module a part of the service.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod decision;
mod identity;
mod keys;
mod registry;
mod schema;
mod store;
mod support;
