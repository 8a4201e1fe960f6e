//! Audit streams: copies of a tenant's events for a sink outside the service.
//!
//! The copies are in order and without gaps. A stream is a cursor on the tenant's event log. The
//! cursor moves when the sink has accepted an event: each event is sent at least once, and none is
//! skipped. A failing sink is retried forever, with back-off. New checkpoints of the tenant's
//! decision log are sent to the same sink, where others can compare the log with them.

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
