//! Tests of the relay: by events, and with a fake service and a scripted server.

mod calls;
mod faults;
mod holds;
mod lists;
mod methods;
mod rounds;
mod scripted;
pub(super) mod signing;
mod world;
