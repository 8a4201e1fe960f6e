//! Audit streams: copies of a tenant's events, in order and without a gap, to a sink outside the service.
//!
//! A stream is a cursor on the tenant's log of events. It moves when the sink has taken an event, so each is
//! sent at least once, and none is skipped: a sink that fails is tried again, for ever, with back-off. New
//! checkpoints of the tenant's log of decisions go to the same sink, where others can hold the log to
//! them.

mod checkpoint;
mod cursor;
mod elsewhere;
mod lag;
#[cfg_attr(not(feature = "nats"), path = "no_nats.rs")]
mod nats;
mod sink;
mod worker;

pub use elsewhere::checkpoints_elsewhere;
pub(crate) use lag::worker as lag_worker;
pub use nats::{Nats, NatsSettings};
pub(crate) use worker::worker;
