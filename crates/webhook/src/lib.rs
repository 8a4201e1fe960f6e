//! What a webhook delivery is, without a store, a runtime, a network, a clock or randomness.
//!
//! - [`destination`]: which URLs an endpoint may have, which addresses an attempt may connect to, which
//!   headers it may add.
//! - [`event_types`]: the families, their JSON Schemas, and which of them an endpoint asks for.
//! - [`envelope`]: the bytes of an event.
//! - [`filter`]: which events an endpoint takes, in a small part of CEL, checked against [`schema`].
//! - [`audit_filter`]: which events an audit stream sends.
//! - [`signing`]: the headers by which a receiver knows that a delivery is genuine, in three suites.
//! - [`retry`]: when a failed attempt is repeated, when an endpoint is left alone or disabled.
//!
//! Times and random numbers are arguments, so that each rule is a function that a table can test.

pub mod audit_filter;
pub mod destination;
pub mod envelope;
pub mod event_types;
pub mod filter;
pub mod retry;
pub mod schema;
pub mod signing;
