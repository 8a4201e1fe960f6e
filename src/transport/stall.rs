//! Ends each HTTP/2 stream with a response that the peer does not read, even if the connection is
//! otherwise busy.
//!
//! Hyper runs each stream as a separate future, which waits until the peer opens its window. The
//! executor given to hyper wraps that future in a future with a timeout. When the outer future
//! ends, hyper's future is dropped, which resets the stream.

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

/// When data became ready that the stream's peer has not read yet.
pub(super) struct Progress {
    began: Instant,
    /// The time as milliseconds after `began`, plus one; 0 if no data is ready.
    since: AtomicU64,
}

/// The progress of the stream that is being polled; `None` outside of a stream.
pub(super) fn current() -> Option<Arc<Progress>> {
    STREAM.try_with(Arc::clone).ok()
}

impl Progress {
    fn new() -> Self {
        Self { began: Instant::now(), since: AtomicU64::new(0) }
    }

    /// Sets the time since when data is ready for the peer; `None` if no data is ready.
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

/// Runs hyper's streams. A stream ends if its peer does not read within the limit.
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
        // Each stream has its own task, which ends with the stream.
        tokio::spawn(Bounded { stream, progress, stalled: self.stalled, timer: None });
    }
}

pin_project! {
    struct Bounded<F> {
        #[pin]
        stream: F,
        progress: Arc<Progress>,
        stalled: Duration,
        // Created when a response first waits for the peer: most are read at once.
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
                metrics::counter!("authority_transport_streams_stalled_total").increment(1);
                return Poll::Ready(());
            }
        }
    }
}
