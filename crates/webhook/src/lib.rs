//! The rules of webhook deliveries. This crate has no store, runtime, network, clock or randomness.
//!
//! - [`destination`]: the permitted URLs of endpoints, addresses of attempts, and additional
//!   headers.
//! - [`event_types`]: the families of events, their JSON Schemas, and the event types that an
//!   endpoint selects.
//! - [`envelope`]: the bytes of an event.
//! - [`filter`]: the event filter of an endpoint, in a small part of CEL, checked against
//!   [`schema`].
//! - [`audit_filter`]: the events that an audit stream sends.
//! - [`signing`]: the headers that prove to a receiver that a delivery is genuine, in three suites.
//! - [`retry`]: when a failed attempt is repeated, and when an endpoint waits or is disabled.
//!
//! Times and random numbers are arguments. Each rule is a function that can be tested with a table
//! of cases.

pub mod audit_filter;
pub mod destination;
pub mod envelope;
pub mod event_types;
pub mod filter;
pub mod retry;
pub mod schema;
pub mod signing;
