//! Streams that tell of a decision after it was made.
//!
//! A permission is judged anew whenever the tenant's authority moves (`stop.rs`), from the graph in
//! memory: no stream asks the database. What waits for people is told by one listener a node
//! (`news.rs`), for all who watch (`held.rs`). A stream is a future that its connection polls: it
//! has no task, and is gone with the client.

mod change_feed;
mod held;
mod stop;

use std::time::Duration;

use authority_model::service::Messages;
use chrono::{DateTime, Utc};
use futures_util::stream;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

pub(super) use change_feed::ChangeFeed;

use super::Runtime;
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};

/// What an API key must hold to watch.
const SCOPE: &str = "runtime:read";
/// Past the very end of the graph's freshness, so that who wakes there finds it stale.
const PAST: Duration = Duration::from_millis(1);

/// Has something to tell, again and again.
trait MessageSource: Send + 'static {
    type Message: Send;

    /// What comes next; `None`: that was all. A refusal is the last that is heard.
    fn next(&mut self) -> impl Future<Output = Option<Result<Self::Message, ApiError>>> + Send;
}

fn stream_of<T: MessageSource>(teller: T) -> Messages<T::Message> {
    let next = |teller: Option<T>| async {
        let mut teller = teller?;
        match teller.next().await? {
            Ok(message) => Some((Ok(message), Some(teller))),
            Err(refusal) => Some((Err(refusal.into()), None)),
        }
    };
    Box::pin(stream::unfold(Some(teller), next))
}

/// What ends any stream, whatever it tells: the end of its caller's credential, person or tenant, the
/// graph's age, the service's stop.
struct Watching {
    runtime: Runtime,
    caller: Caller,
    moved: watch::Receiver<i64>,
}

impl Watching {
    fn new(runtime: Runtime, caller: Caller, tenant_id: &str) -> Self {
        metrics::gauge!("authority_live_streams").increment(1);
        let moved = runtime.0.graph.watch(tenant_id);
        Self { runtime, caller, moved }
    }

    /// Whether the caller may still be told.
    fn may_go_on(&self) -> Result<(), ApiError> {
        let now = self.runtime.0.clock.now();
        self.runtime.credential_holds(&self.caller, SCOPE, None, now)
    }

    /// When it will be that time by this clock; none: beyond what an instant can say.
    fn when(&self, at: DateTime<Utc>) -> Option<Instant> {
        let left = (at - self.runtime.0.clock.now()).to_std().unwrap_or_default();
        Instant::now().checked_add(left)
    }

    /// Waits until the tenant's authority moves or may have grown too old, or the caller's credential
    /// ends; `by` then at the latest.
    async fn moves(&mut self, by: Instant) -> Result<(), ApiError> {
        let stale = Instant::from_std(self.runtime.0.graph.fresh_until()) + PAST;
        let ends = self.runtime.credential_until(&self.caller);
        let by = ends.and_then(|end| self.when(end)).map_or(by, |end| end.min(by));
        tokio::select! {
            biased;
            () = self.runtime.0.shutdown.wait() => {
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
