//! The integration tests: one binary, a module a part of the service.

mod decision;
mod registry;
mod schema;
mod store;
mod support;
