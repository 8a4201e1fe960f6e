//! The integration tests: one binary, a module a part of the service.

mod schema;
mod store;
mod support;
//! The integration tests, a module a part of the service.
mod identity;
mod keys;
