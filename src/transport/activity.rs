//! What a connection is busy with, so that an idle or a stalled one can be told from a slow answer
//! of ours.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// Counters of one connection. Its tasks take turns, so a relaxed order is enough.
pub(super) struct Activity {
    since: Instant,
    /// Milliseconds after `since` at which a request or a part of an answer last moved.
    moved: AtomicU64,
    started: AtomicU64,
    running: AtomicUsize,
    /// Answers of which the peer has yet to take what is there.
    untaken: AtomicUsize,
    /// What those answers hold, in bytes.
    unsent: AtomicU64,
    /// At this much of it new requests wait; twice as much is not held.
    room: u64,
    /// Told when there is room again.
    freed: Notify,
}

pub(super) enum Verdict {
    /// Look again after this.
    Fine(Duration),
    Idle,
    Stalled,
}

impl Activity {
    /// `room`: the bytes of answers not yet taken at which new requests wait.
    pub(super) fn new(room: u64) -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            moved: AtomicU64::new(0),
            started: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
            unsent: AtomicU64::new(0),
            room,
            freed: Notify::new(),
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

    /// Whether another request may begin.
    pub(super) fn has_room(&self) -> bool {
        self.unsent.load(Relaxed) < self.room
    }

    /// Waits until the peer has taken enough of its answers.
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

    /// `stalled`: the bound on a connection whose peer takes nothing, where it has one.
    pub(super) fn verdict(&self, idle: Duration, stalled: Option<Duration>) -> Verdict {
        let still =
            self.since.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Relaxed)));
        let (bound, verdict) = if !self.running() {
            (idle, Verdict::Idle)
        } else if let Some(stalled) = stalled.filter(|_| self.untaken.load(Relaxed) > 0) {
            (stalled, Verdict::Stalled)
        } else {
            return Verdict::Fine(stalled.map_or(idle, |stalled| idle.min(stalled)));
        };
        match bound.checked_sub(still).filter(|left| !left.is_zero()) {
            Some(left) => Verdict::Fine(left),
            None => verdict,
        }
    }

    /// Notes that something moved, and when.
    fn moved(&self) -> Instant {
        let now = Instant::now();
        let millis = now.saturating_duration_since(self.since).as_millis();
        self.moved.store(u64::try_from(millis).unwrap_or(u64::MAX), Relaxed);
        now
    }
}

/// A request under way, from its head to the last of its answer.
pub(super) struct Running(Arc<Activity>);

impl Running {
    /// The answer's head is there: from now on the peer is to take it.
    pub(super) fn begin_answer(&self) {
        self.0.untaken.fetch_add(1, Relaxed);
    }

    pub(super) fn mark_untaken(&self, untaken: bool) {
        if untaken {
            self.0.untaken.fetch_add(1, Relaxed);
        } else {
            self.0.untaken.fetch_sub(1, Relaxed);
        }
    }

    pub(super) fn moved(&self) -> Instant {
        self.0.moved()
    }

    /// Whether `bytes` more, which are counted, are not too much; the first answer never is.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        let unsent = self.0.unsent.load(Relaxed);
        unsent <= bytes || unsent <= 2 * self.0.room
    }

    /// An answer held `before` bytes and holds `now`.
    pub(super) fn recount(&self, before: u64, now: u64) {
        if now > before {
            self.0.unsent.fetch_add(now - before, Relaxed);
        } else if now < before {
            let all = self.0.unsent.fetch_sub(before - now, Relaxed);
            if all >= self.0.room && all - (before - now) < self.0.room {
                self.0.freed.notify_waiters();
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
