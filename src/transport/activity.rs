//! The activity of a connection. It distinguishes an idle or stalled peer from a slow response of
//! the service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::budget::Share;

/// How long a connection beyond its tenant's share may be idle.
const CURBED_IDLE: Duration = Duration::from_secs(1);

/// Counters of one connection. They are independent: relaxed ordering is enough.
pub(super) struct Activity {
    since: Instant,
    /// Milliseconds from `since` to the last progress of a request or response.
    moved: AtomicU64,
    started: AtomicU64,
    running: AtomicUsize,
    /// Responses with data that the peer has not read yet.
    unread: AtomicUsize,
    /// The number of bytes in those responses.
    unsent: Arc<Share>,
    /// The number of `unsent` bytes at which new requests wait. Except for a single large response,
    /// the connection never holds more than twice as many.
    room: u64,
    /// Notified when `unsent` falls below the limit.
    freed: Notify,
    /// Whether the connection exceeds its tenant's share.
    is_curbed: AtomicBool,
    curbed: Notify,
}

pub(super) enum Verdict {
    /// The connection may continue. Check it again after this time.
    Fine(Duration),
    Idle,
    Stalled,
}

impl Activity {
    /// `room` is the number of unread response bytes at which new requests wait.
    pub(super) fn new(room: u64, unsent: Arc<Share>) -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            moved: AtomicU64::new(0),
            started: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            unsent,
            room,
            freed: Notify::new(),
            is_curbed: AtomicBool::new(false),
            curbed: Notify::new(),
        })
    }

    /// The number of requests so far.
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

    /// Whether another request may start.
    pub(super) fn has_room(&self) -> bool {
        self.unsent.unsent() < self.room
    }

    /// Waits until the peer has read enough of its responses.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if self.has_room() {
                return;
            }
            freed.await;
        }
    }

    /// Marks the connection as excess: it is closed when idle.
    pub(super) fn curb(&self) {
        self.is_curbed.store(true, Relaxed);
        self.curbed.notify_one();
    }

    /// Completes once the connection is curbed, with the time until the next check.
    pub(super) async fn curbed(&self) -> Duration {
        self.curbed.notified().await;
        CURBED_IDLE
    }

    /// Returns whether the connection is idle or stalled. `stalled` is the time limit for a peer
    /// that does not read, if any.
    pub(super) fn verdict(&self, idle: Duration, stalled: Option<Duration>) -> Verdict {
        let still =
            self.since.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Relaxed)));
        let idle = if self.is_curbed.load(Relaxed) { idle.min(CURBED_IDLE) } else { idle };
        let (bound, verdict) = if !self.running() {
            (idle, Verdict::Idle)
        } else if let Some(stalled) = stalled.filter(|_| self.unread.load(Relaxed) > 0) {
            (stalled, Verdict::Stalled)
        } else {
            return Verdict::Fine(stalled.map_or(idle, |stalled| idle.min(stalled)));
        };
        match bound.checked_sub(still).filter(|left| !left.is_zero()) {
            Some(left) => Verdict::Fine(left),
            None => verdict,
        }
    }

    /// Records progress; returns its time.
    fn moved(&self) -> Instant {
        let now = Instant::now();
        let millis = now.saturating_duration_since(self.since).as_millis();
        self.moved.store(u64::try_from(millis).unwrap_or(u64::MAX), Relaxed);
        now
    }
}

/// A request in progress, from its head to the end of its response.
pub(super) struct Running(Arc<Activity>);

impl Running {
    /// Marks the response's head as ready: from now on the peer has to read it.
    pub(super) fn begin_answer(&self) {
        self.0.unread.fetch_add(1, Relaxed);
    }

    pub(super) fn mark_unread(&self, unread: bool) {
        if unread {
            self.0.unread.fetch_add(1, Relaxed);
        } else {
            self.0.unread.fetch_sub(1, Relaxed);
        }
    }

    pub(super) fn moved(&self) -> Instant {
        self.0.moved()
    }

    /// Whether a response of `bytes`, which are already counted, fits. It always fits if there is
    /// no other unread response.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        let unsent = self.0.unsent.unsent();
        unsent <= bytes || unsent <= 2 * self.0.room
    }

    /// Updates the count of a response that held `before` bytes and now holds `now`.
    pub(super) fn recount(&self, before: u64, now: u64) {
        let Activity { unsent, room, freed, .. } = &*self.0;
        if now > before {
            unsent.take(now - before);
        } else if now < before {
            let less = before - now;
            let all = unsent.give_back(less);
            if all >= *room && all - less < *room {
                freed.notify_waiters();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
        self.0.moved();
    }
}
