//! Deliveries to webhook endpoints, with a receiver on the loopback address.

mod endless;
mod failing;
mod fan_out;
mod held;
mod late;
mod libraries;
mod nodes;
mod queued;
mod receiver;
mod released;
mod replays;
mod sent;
mod service;
mod test_limit;
mod waiting;
mod world;

pub(crate) use receiver::{Answer, Received, Receiver};
pub(super) use world::{Endpoint, Made, World};
