//! A delivery that this node has claimed.

use std::{sync::Arc, time::Duration};

use authority_ids::{DeliveryRef, EventRef, RecordRef};
use bytes::Bytes;
use tokio::time::Instant;

use super::{
    client::{BODY, WHOLE},
    endpoint::Endpoint,
    places::DeliveryPlace,
};

/// How much longer than a whole attempt a lease must last.
const MARGIN: Duration = Duration::from_secs(2);

/// A claimed delivery with the data for an attempt.
pub(super) struct Job {
    pub(super) id: DeliveryRef,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) place: Arc<DeliveryPlace>,
    pub(super) event_id: EventRef,
    pub(super) sequence: i64,
    /// The event's bytes; `None` if retention has deleted them.
    pub(super) body: Option<Bytes>,
    pub(super) replay_id: Option<RecordRef>,
    pub(super) lane: usize,
    pub(super) attempts: i32,
    pub(super) attempts_before: i32,
    pub(super) lease: String,
    pub(super) leased_until: Instant,
    /// Whether the delivery is the probe of a breaker that is not closed.
    pub(super) is_probe: bool,
    /// The endpoint's rate limit.
    pub(super) per_second: i32,
    /// The endpoint's consecutive failures when the delivery was claimed.
    pub(super) failures: u32,
}

impl Job {
    /// Whether an attempt might outlast the lease.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        now + WHOLE + BODY + MARGIN >= self.leased_until
    }
}
