//! Streams that follow a decision after it was made.
//!
//! Whenever a tenant's authority changes, streams check the stop conditions of their permissions on
//! the graph in memory, without the database (`stop.rs`). A round then judges the requests of all
//! the tenant's watched permissions (`watched.rs`) again (`rounds.rs`). For held decisions
//! (`held.rs`) each node has one listener (`change_feed.rs`) for all streams. A stream is a future
//! that its connection polls. It has no task of its own and ends when the client disconnects.

mod change_feed;
mod held;
mod rounds;
mod stop;
mod watched;

use std::{sync::Arc, time::Duration};

use authority_ids::TenantId;
use chrono::{DateTime, Utc};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::facts::FactSource;
use authority_api::{
    credentials::Credentials,
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_process::{clock::Clock, compute::ComputePool, worker::Worker};
use change_feed::ChangeFeed;
use rounds::Rounds;
use watched::WatchedPermissions;

/// The scope that an API key needs to watch.
const SCOPE: &str = "runtime:read";
/// Added to the time at which the graph becomes stale. A stream that wakes then finds it stale.
const WAKE_MARGIN: Duration = Duration::from_millis(1);

/// Opens streams.
pub(super) struct Watches {
    clock: Clock,
    facts: FactSource,
    credentials: Credentials,
    change_feed: ChangeFeed,
    watched: WatchedPermissions,
    /// The interval of heartbeats.
    heartbeat: Duration,
    /// Ends the streams, which would otherwise block the drain.
    shutdown: CancellationToken,
}

impl Watches {
    /// Starts without streams. Also returns the background work that streams need.
    pub(super) fn new(
        clock: &Clock,
        facts: &FactSource,
        credentials: &Credentials,
        pool: &ComputePool,
        heartbeat: Duration,
        shutdown: CancellationToken,
    ) -> (Self, [Worker; 2]) {
        let (clock, facts, credentials) = (clock.clone(), facts.clone(), credentials.clone());
        let (change_feed, feed) = ChangeFeed::new(&facts.store);
        let (watched, judge) = Rounds::watching(clock.clone(), facts.clone(), pool.clone());
        let watches = Self { clock, facts, credentials, change_feed, watched, heartbeat, shutdown };
        (watches, [feed, judge])
    }
}

/// Ends any stream when the caller's credential, person or tenant ends, when the graph is stale, or
/// when the service stops.
struct Watching {
    watches: Arc<Watches>,
    caller: Caller,
    moved: watch::Receiver<i64>,
}

impl Watching {
    fn new(watches: Arc<Watches>, caller: Caller, tenant_id: &TenantId) -> Self {
        metrics::gauge!("authority_live_streams").increment(1);
        let moved = watches.facts.graph.watch(tenant_id);
        Self { watches, caller, moved }
    }

    /// Whether the caller may still receive messages.
    fn may_go_on(&self) -> Result<(), ApiError> {
        let now = self.watches.clock.now();
        self.watches.credentials.check(&self.caller, SCOPE, None, now)
    }

    /// Converts a time of the service's clock to an instant. `None` if it is out of range.
    fn when(&self, at: DateTime<Utc>) -> Option<Instant> {
        let left = (at - self.watches.clock.now()).to_std().unwrap_or_default();
        Instant::now().checked_add(left)
    }

    /// Waits for a change of the tenant's authority. Also returns when the authority may have
    /// become too old or the caller's credential ends. Returns at `by` at the latest.
    async fn moves(&mut self, by: Instant) -> Result<(), ApiError> {
        let stale = Instant::from_std(self.watches.facts.graph.fresh_until()) + WAKE_MARGIN;
        let ends = self.watches.credentials.until(&self.caller);
        let by = ends.and_then(|end| self.when(end)).map_or(by, |end| end.min(by));
        tokio::select! {
            biased;
            () = self.watches.shutdown.cancelled() => {
                Err(ApiError::new(ErrorCode::Unavailable, "the service is stopping; watch again"))
            }
            moved = self.moved.changed() => {
                moved.map_err(|_| ApiError::plain(ErrorCode::Unavailable))
            }
            () = sleep_until(by.min(stale)) => Ok(()),
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        metrics::gauge!("authority_live_streams").decrement(1);
    }
}
