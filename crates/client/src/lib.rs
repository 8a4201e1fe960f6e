//! Calls a service over REST, as its command line and its tests do.
//!
//! [`Client`] sends requests with one credential to one [`Base`]. The paths that a credential opens
//! depend on its [`Surface`]. An [`Error`] contains the service's answer, for the caller to explain.

mod address;
mod base;
mod client;
mod error;
mod lines;
mod surface;

pub use address::{address, is_loopback};
pub use base::{Base, reachable};
pub use client::{Client, OnceAnswer, TO_CONNECT};
pub use error::{ApiError, Detail, Error, Refusal, deepest};
pub use lines::{Lines, Next};
pub use surface::{SURFACE, Surface};
