//! The integration tests, a module a part of the service.

mod identity;
mod keys;
