//! Deliveries to webhook endpoints, by a receiver on the loopback.

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
mod waiting;
mod world;

pub(crate) use receiver::{Answer, Receiver};
pub(super) use world::{Endpoint, Made, World};
