//! Tests gateway-rest from the outside: HTTP in, HTTP out, over a small library service.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bodies;
mod build;
mod faults;
mod library;
mod openapi;
mod replies;
mod round_trip;
mod routing;
mod streams;
mod words;
