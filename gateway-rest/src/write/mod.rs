//! Writes protobuf bytes as JSON text, directly into one buffer, by [`Shape`](crate::shape::Shape).
//!
//! A message is scanned once to find the position of each field, then written in the proto's order.
//! The order on the wire may differ, and absent members are also written.

mod free;
mod literal;
mod message;
mod places;
mod scalar;

pub(crate) use message::{field, members, message};
pub(crate) use places::only;
