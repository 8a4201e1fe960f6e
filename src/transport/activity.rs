//! What a connection is busy with, so that an idle or a stalled one can be told from a slow answer
//! of ours.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

/// Counters of one connection. Its tasks take turns, so a relaxed order is enough.
pub(super) struct Activity {
    since: Instant,
    /// Milliseconds after `since` at which a request or a part of an answer last moved.
    moved: AtomicU64,
    started: AtomicU64,
    running: AtomicUsize,
    /// Answers of which the peer has yet to take what is there.
    untaken: AtomicUsize,
}

pub(super) enum Verdict {
    /// Look again after this.
    Fine(Duration),
    Idle,
    Stalled,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            moved: AtomicU64::new(0),
            started: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
        })
    }

    /// How many requests came so far.
    pub(super) fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    pub(super) fn running(&self) -> bool {
        self.running.load(Relaxed) > 0
    }

    pub(super) fn start(self: &Arc<Self>) -> Running {
        self.moved();
        self.started.fetch_add(1, Relaxed);
        self.running.fetch_add(1, Relaxed);
        Running(Arc::clone(self))
    }

    pub(super) fn verdict(&self, idle: Duration, stalled: Duration) -> Verdict {
        let still =
            self.since.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Relaxed)));
        let (bound, verdict) = if !self.running() {
            (idle, Verdict::Idle)
        } else if self.untaken.load(Relaxed) > 0 {
            (stalled, Verdict::Stalled)
        } else {
            return Verdict::Fine(idle.min(stalled));
        };
        match bound.checked_sub(still).filter(|left| !left.is_zero()) {
            Some(left) => Verdict::Fine(left),
            None => verdict,
        }
    }

    fn moved(&self) {
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(millis, Relaxed);
    }
}

/// A request under way, from its head to the last of its answer.
pub(super) struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
        self.0.moved();
    }
}

/// An answer's body. Hyper asks for a part only when the peer has room, so the time between a part
/// given and the next asked for is the peer's, and the time until a part is there is ours.
pub(super) struct Answer {
    body: Body,
    running: Running,
    untaken: bool,
}

impl Answer {
    pub(super) fn new(body: Body, running: Running) -> Self {
        running.0.untaken.fetch_add(1, Relaxed);
        running.0.moved();
        Self { body, running, untaken: true }
    }

    fn set_untaken(&mut self, untaken: bool) {
        if self.untaken != untaken {
            self.untaken = untaken;
            let count = &self.running.0.untaken;
            if untaken {
                count.fetch_add(1, Relaxed)
            } else {
                count.fetch_sub(1, Relaxed)
            };
        }
        self.running.0.moved();
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.set_untaken(polled.is_ready());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.set_untaken(false);
    }
}
