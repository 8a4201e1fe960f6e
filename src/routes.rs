//! `google.api.http` of every method as REST routes, and the shape of every message.
//!
//! `ROUTES`, `SHAPES`, `shape(name)`: written by gateway-rest-build.

include!(concat!(env!("OUT_DIR"), "/routes.rs"));
