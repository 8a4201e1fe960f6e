//! Ends HTTP/2 streams whose answers nobody takes, one by one: a connection that is otherwise busy
//! does not keep them.
//!
//! Hyper runs each stream as a future of its own, and waits in it for as long as the peer opens no
//! window. So the executor that hyper is given wraps that future in one that looks at the clock;
//! dropped, it resets its stream.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    /// The stream that is being polled.
    static STREAM: Arc<Progress>;
}

/// Since when a stream's peer has taken nothing of what is there for it.
pub(super) struct Progress {
    began: Instant,
    /// Milliseconds after `began`, and one; 0: it owes nothing.
    since: AtomicU64,
}

/// Of the stream in whose future this is called; none outside of one.
pub(super) fn current() -> Option<Arc<Progress>> {
    STREAM.try_with(Arc::clone).ok()
}

impl Progress {
    fn new() -> Self {
        Self { began: Instant::now(), since: AtomicU64::new(0) }
    }

    /// Something is there for the peer since then, or nothing is.
    pub(super) fn mark(&self, since: Option<Instant>) {
        let millis = since.map_or(0, |at| {
            let after = at.saturating_duration_since(self.began).as_millis();
            u64::try_from(after).unwrap_or(u64::MAX - 1) + 1
        });
        self.since.store(millis, Relaxed);
    }

    fn since(&self) -> Option<Instant> {
        let millis = self.since.load(Relaxed).checked_sub(1)?;
        Some(self.began + Duration::from_millis(millis))
    }
}

/// Runs hyper's streams, each for as long as its peer takes what is there within the bound.
#[derive(Clone, Copy)]
pub(super) struct Streams {
    pub(super) stalled: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let progress = Arc::new(Progress::new());
        tokio::spawn(Bounded { stream, progress, stalled: self.stalled, timer: None });
    }
}

pin_project! {
    struct Bounded<F> {
        #[pin]
        stream: F,
        progress: Arc<Progress>,
        stalled: Duration,
        // Made when the peer first keeps an answer waiting: most are taken at once.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future<Output = ()>> Future for Bounded<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let (stream, progress) = (this.stream, &*this.progress);
        if STREAM.sync_scope(Arc::clone(progress), || stream.poll(context)).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let Some(since) = progress.since() else { return Poll::Pending };
            let ends = since + *this.stalled;
            let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(ends)));
            if timer.deadline() != ends {
                timer.as_mut().reset(ends);
            }
            ready!(timer.as_mut().poll(context));
            if ends <= Instant::now() {
                metrics::counter!("transport_streams_stalled_total").increment(1);
                return Poll::Ready(());
            }
        }
    }
}
