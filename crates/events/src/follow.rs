//! Streams of a tenant's events. Each stream is a cursor on the log and has no queue.

use std::{collections::VecDeque, time::Duration};

use authority_ids::TenantId;
use authority_model::proto::events::StreamEventsResponse;
use tokio::{
    sync::broadcast,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use authority_api::{
    credentials::Credentials,
    error::{ApiError, ErrorCode},
    identity::Caller,
    rate_limit::AppliedLimits,
    stream::{self, MessageSource, Places},
};
use authority_process::clock::Clock;
use authority_store::{Db, Scope, Store};

use crate::{
    demand::Demand,
    feed::{Grown, grows},
    page::{Page, VisiblePart},
};

/// The scope that an API key needs to read events.
pub(crate) const SCOPE: &str = "events:read";
/// The most streams of a tenant on one node.
const MOST: usize = 20;
/// The most streams for one credential. The tenant's other credentials must be able to open streams
/// as well.
const MOST_EACH: usize = 5;
/// The most events read at once.
const READ: i64 = 100;
/// The longest time between two messages.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the log is read without a notification, because notifications may be lost.
const POLL: Duration = Duration::from_secs(1);
/// How long a client may leave messages unread before its stream ends.
const UNREAD: Duration = Duration::from_secs(60);

/// Limits the open streams of one type on this node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Streams(Places);

/// An open stream, counted towards the limits and in the metrics until it is dropped.
pub(crate) struct OpenStream {
    place: stream::StreamPlace,
}

impl OpenStream {
    /// The limits for the stream's response.
    pub(crate) fn limits(&self) -> AppliedLimits {
        self.place.limits()
    }
}

impl Streams {
    pub(crate) fn new(sort: &'static str) -> Self {
        Self(Places::new(sort, MOST, MOST_EACH))
    }

    /// Admits a new stream.
    ///
    /// # Errors
    /// The tenant or the caller has too many streams.
    pub(crate) fn enter(
        &self,
        tenant_id: &TenantId,
        caller: &Caller,
    ) -> Result<OpenStream, ApiError> {
        let place = self.0.enter(tenant_id, caller.identity())?;
        metrics::gauge!("authority_event_streams").increment(1);
        Ok(OpenStream { place })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        metrics::gauge!("authority_event_streams").decrement(1);
    }
}

/// The state of one stream.
pub(crate) struct Follow {
    pub(crate) store: Store,
    pub(crate) scope: Scope,
    pub(crate) clock: Clock,
    pub(crate) credentials: Credentials,
    pub(crate) shutdown: CancellationToken,
    pub(crate) caller: Caller,
    pub(crate) part: VisiblePart,
    pub(crate) grown: broadcast::Receiver<Grown>,
    /// The sequence up to which events were read.
    pub(crate) after: i64,
    /// Events that were read but not sent yet.
    pub(crate) unsent: VecDeque<(i64, Vec<u8>)>,
    /// When the last message was ready to be sent.
    pub(crate) sent: Option<Instant>,
    pub(crate) _place: OpenStream,
    pub(crate) _demand: Option<Demand>,
}

impl MessageSource for Follow {
    type Message = StreamEventsResponse;

    async fn next(&mut self) -> Option<Result<Self::Message, ApiError>> {
        let message = self.message().await;
        self.sent = Some(Instant::now());
        Some(message)
    }
}

impl Follow {
    async fn message(&mut self) -> Result<StreamEventsResponse, ApiError> {
        if self.sent.is_some_and(|sent| sent.elapsed() > UNREAD) {
            let message = "no message was read for 60 seconds; resume after the last sequence";
            return Err(ApiError::new(ErrorCode::Unavailable, message));
        }
        let beat = Instant::now() + HEARTBEAT;
        loop {
            let now = self.clock.now();
            self.credentials.check_stream(&self.caller, SCOPE, &self.part.tenant_id, now)?;
            if self.shutdown.is_cancelled() {
                let message = "the service is stopping; resume after the last sequence";
                return Err(ApiError::new(ErrorCode::Unavailable, message));
            }
            if let Some((sequence, event)) = self.unsent.pop_front() {
                return Ok(StreamEventsResponse { sequence, event: Some(event) });
            }
            let Page { events, next_after, bounds } = self.page().await?;
            self.after = next_after;
            self.unsent = events.into();
            if !self.unsent.is_empty() || self.after < bounds.head {
                continue;
            }
            if Instant::now() >= beat {
                return Ok(StreamEventsResponse { sequence: self.after, event: None });
            }
            self.wait(beat).await;
        }
    }

    async fn page(&self) -> Result<Page, ApiError> {
        let (part, after) = (self.part.clone(), self.after);
        let read = async move |db: &mut Db| part.read(db, Some(after), READ).await;
        self.store.read_tx(&self.scope, read).await
    }

    /// Waits until the log may have grown, the service stops or `by` is reached.
    ///
    /// It waits at most [`POLL`], because the caller's credential must be checked again.
    async fn wait(&mut self, by: Instant) {
        let by = by.min(Instant::now() + POLL);
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = grows(&mut self.grown, self.part.tenant_id.as_str()) => {}
            () = sleep_until(by) => {}
        }
    }
}
