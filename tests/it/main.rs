//! The integration tests, a module a part of the service.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod identity;
mod keys;
